"""Scores of a question from its trace, as the row that a run stores. All traces are scored here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.failures import WrongAnswerCause, failure_of
from pyrag.evaluation.metrics import LABELS, is_claim, score_text, script_of
from pyrag.evaluation.retrieval_recall import Hop, hops_of
from pyrag.trace.model import RoleUsage, Step, Trace, TraceError

# Failures that are not the method's fault: a second run of the command asks these questions again.
TRANSIENT = frozenset({"service", "sandbox", "deadline", "crash"})


@dataclass(frozen=True, slots=True)
class ResultRow:
    """Answered question of a run. Seconds are wall time; `critical_path` only covers the steps.

    Attributes:
        chance_em: Expected exact match of a guess between the two options in the question.
        unknowns: Number of retried steps, whose first answer was unknown.
        recovered: Number of retried steps that ended in an answer.
        fallbacks: Number of plans replaced by a fallback, since no reply was usable.
        trace: Position of the trace in the trace file of set and method: first byte and length.
    """

    set: str
    method: str
    id: str
    question: str
    gold: tuple[str, ...]
    answer: str
    known: bool
    em: float
    f1: float
    accuracy: float
    chance_em: float
    type: str = ""
    hops: int = 0
    support: tuple[Hop, ...] = ()
    calls: int = 0
    retrievals: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    repairs: int = 0
    revisions: int = 0
    unknowns: int = 0
    recovered: int = 0
    tool_calls: int = 0
    fallbacks: int = 0
    failure: WrongAnswerCause | None = None
    error: TraceError | None = None
    seconds: float = 0.0
    critical_path: float = 0.0
    session: int = 0
    trace: tuple[int, int] = (0, 0)
    roles: dict[str, RoleUsage] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """Set, method and id of the question."""
        return self.set, self.method, self.id

    @property
    def is_transient(self) -> bool:
        """True if the question failed for a reason outside the method, so that it will be asked again."""
        return self.error is not None and self.error.kind in TRANSIENT


def score(
    set_name: str, method: str, question: Question, trace: Trace, titles: Mapping[str, str] | None = None
) -> ResultRow:
    """Return the row of an answered question.

    Args:
        set_name: Name of the set, which selects the scoring rules.
        method: Name of the method.
        question: Question with gold answers and passages.
        trace: Trace of the answer.
        titles: Titles of gold passages by id, for the error analysis.
    """
    text = trace.answer.text if trace.answer.known else ""
    em, f1, accuracy = score_text(text, question.answers, script_of(set_name))
    hops = hops_of(question, trace)
    tried = [step for step in trace.steps if len(step.attempts) > 1 and not step.memo]
    origins = [program.origin for program in trace.programs]
    return ResultRow(
        set=set_name,
        method=method,
        id=question.id,
        question=question.question,
        gold=question.answers,
        answer=trace.answer.text,
        known=trace.answer.known,
        em=em,
        f1=f1,
        accuracy=accuracy,
        chance_em=0.5 if is_binary(question) else 0.0,
        type=question.type,
        hops=question.hops or len(question.decomposition) or len(question.supporting),
        support=hops,
        calls=trace.usage.model_calls,
        retrievals=trace.usage.retrievals,
        prompt_tokens=trace.usage.prompt_tokens,
        completion_tokens=trace.usage.completion_tokens,
        steps=len(trace.steps),
        repairs=origins.count("repair"),
        revisions=origins.count("check"),
        unknowns=len(tried),
        recovered=sum(step.answer is not None and step.answer.known for step in tried),
        tool_calls=trace.usage.tool_calls,
        fallbacks=len(trace.fallbacks),
        failure=None if em == 1.0 else failure_of(question, trace, hops, titles or {}),
        error=trace.error,
        seconds=trace.usage.seconds,
        critical_path=critical_path(trace.steps),
        roles=trace.roles,
    )


def asked(question: Question) -> str:
    """Return the text that a method is asked: the question, or whether a claim is true."""
    if is_claim(question.answers):
        return f"Is this true? {question.question.strip()}"  # a claim may be several sentences
    return question.question


def is_binary(question: Question) -> bool:
    """Return True for questions with two options: yes/no, a label, or an answer that is named with an alternative."""
    if not question.answers:
        return False
    gold = question.answers[0]
    if gold.lower() in ("yes", "no") or gold in LABELS:
        return True
    return gold.lower() in question.question.lower() and re.search(r"\bor\b", question.question) is not None


def critical_path(steps: tuple[Step, ...]) -> float:
    """Return the seconds of the longest chain of dependent steps; rounds run one after another.

    Planning and the sandbox are not included.
    """
    ends: dict[int, float] = {}
    longest: dict[int, float] = {}
    for step in steps:
        ends[step.id] = max((ends.get(source, 0.0) for source in step.depends_on), default=0.0) + step.seconds
        longest[step.round] = max(longest.get(step.round, 0.0), ends[step.id])
    return sum(longest.values())
