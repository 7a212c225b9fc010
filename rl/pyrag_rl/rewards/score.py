"""Score of a completion, as verl takes it: a fixed set of numbers, whatever happened.

`KEYS` never changes within a version, since verl joins the numbers of a batch. Why a completion scored nothing is
a number too (`error`), since verl's metrics hold nothing else; `ERRORS` has the names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pyrag.trace.model import Trace

# Position is the number in `error`. New names go to the end, so that old runs stay readable.
ERRORS = (
    "",  # 0: scored
    "bad_form",  # out of the agent's form: no <answer>, no list, no rewritten query
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
OUTSIDE = frozenset({"service", "crash"})  # what is counted in `infra`


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """`score` is the reward; the rest is what it was made of, 0 where a role has no such part.

    `trace` is the run that was scored, where there was one; `detail` one sentence about the error.
    """

    score: float = 0.0
    f1: float = 0.0
    em: float = 0.0
    form: float = 0.0  # 1: the completion had the agent's form
    sufficiency: float = 0.0  # OPERA, eq. 9
    logic: float = 0.0  # OPERA, eq. 7
    structure: float = 0.0
    execution: float = 0.0
    ndcg: float = 0.0  # OPERA, eq. 10
    error: str = ""
    calls: float = 0.0  # model calls that the score cost
    seconds: float = 0.0
    waited: float = 0.0  # of them, for frozen agents and the retriever
    retries: float = 0.0  # tries before this one that failed outside the completion
    coverage: float = 0.0  # share of the gold passages that the program retrieved
    trace: Trace | None = None
    detail: str = ""

    def numbers(self) -> dict[str, float]:
        """Return verl's numbers; the keys are `KEYS`."""
        found = {key: float(getattr(self, key)) for key in _PLAIN}
        return {**found, "error": float(ERRORS.index(self.error)), "infra": float(self.error in OUTSIDE)}


_PLAIN = tuple(one.name for one in fields(Score) if one.name not in ("error", "trace", "detail"))
KEYS = (*_PLAIN, "error", "infra")
