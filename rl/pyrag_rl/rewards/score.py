"""Score of a completion in verl's form, which is always the same set of numbers.

`KEYS` never changes within a version, since verl joins the numbers of a batch. The reason why a completion scored 0 is
a number too (`error`), since verl's metrics only contain numbers; `ERRORS` lists the names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pyrag.trace.model import Trace

# The index of a name is the number in `error`. New names go to the end, so that old runs stay readable.
ERRORS = (
    "",  # 0: scored
    "bad_form",  # not in the agent's form: no <answer>, no list, no rewritten query
    "no_program",
    "syntax_error",
    "runtime_error",  # the program raised, was refused by the sandbox, or set no final answer
    "timeout",  # of the program or of the whole question
    "call_budget",
    "unknown",  # it ran, to "unknown"
    "service",  # a frozen agent, retriever or the sandbox could not be used: says nothing about the completion
    "crash",  # a fault of ours: says nothing about the completion
    "tried_before",  # a rewritten query that had been searched for
)
OUTSIDE = frozenset({"service", "crash"})  # errors counted in `infra`


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of a completion. `score` is the reward; the other numbers are its parts, 0 if a role has no such part.

    Attributes:
        trace: The run that was scored, if any.
        detail: One sentence about the error.
    """

    score: float = 0.0
    f1: float = 0.0
    em: float = 0.0
    form: float = 0.0  # 1 if the completion had the agent's form
    sufficiency: float = 0.0  # OPERA, eq. 9
    logic: float = 0.0  # OPERA, eq. 7
    structure: float = 0.0
    execution: float = 0.0
    ndcg: float = 0.0  # OPERA, eq. 10
    error: str = ""
    calls: float = 0.0  # model calls made for the score
    seconds: float = 0.0
    waited: float = 0.0  # seconds of these spent waiting for frozen agents and the retriever
    retries: float = 0.0  # tries before this one that failed outside the completion
    coverage: float = 0.0  # share of the gold passages that the program retrieved
    trace: Trace | None = None
    detail: str = ""

    def numbers(self) -> dict[str, float]:
        """Return verl's numbers; the keys are `KEYS`."""
        parts = {key: float(getattr(self, key)) for key in _PLAIN}
        return {**parts, "error": float(ERRORS.index(self.error)), "infra": float(self.error in OUTSIDE)}


_PLAIN = tuple(field.name for field in fields(Score) if field.name not in ("error", "trace", "detail"))
KEYS = (*_PLAIN, "error", "infra")
