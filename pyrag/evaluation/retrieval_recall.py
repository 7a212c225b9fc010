"""Gold passages that a trace retrieved, with retrieval, step and rank for each hop.

A gold passage counts as found if one of its alternatives was found; HoVer's gold passages are known only by title.
Ranks count from 1 and are the best over all retrievals of the trace.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag.evaluation.datasets.layout import Question
from pyrag.methods.registry import reading_primitives
from pyrag.trace.model import Step, Trace


@dataclass(frozen=True, slots=True)
class Hop:
    """Gold passage, and how it was found.

    Attributes:
        step: Id of the step that first found it.
        retrieval: Number, from 1, of the retrieval that first found it.
        recovered: Whether the recovery ladder found it first, rather than one of the program's `retrieve` calls.
        passages: Ids of retrieved passages that count as the gold passage, if they differ from `gold`.
    """

    gold: str
    step: int | None = None
    retrieval: int | None = None
    rank: int | None = None
    recovered: bool = False
    passages: tuple[str, ...] = ()

    @property
    def is_found(self) -> bool:
        """True if the passage was retrieved."""
        return self.rank is not None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages that one search returned, best first."""

    step: int
    number: int
    passages: tuple[str, ...]
    recovery: bool = False


def hops_of(question: Question, trace: Trace) -> tuple[Hop, ...]:
    """Return one entry per gold passage, in the order of the data set (hop order in MuSiQue).

    Args:
        question: Question with its gold passages.
        trace: Trace with the retrieved passages.
    """
    seen = list(retrievals(trace))
    return tuple(_hop(gold, accepted, seen) for gold, accepted in accepted_of(question, trace))


def _hop(gold: str, accepted: set[str], seen: list[Retrieval]) -> Hop:
    hits = [(retrieval, rank) for retrieval in seen if (rank := _rank(retrieval.passages, accepted))]
    if not hits:
        return Hop(gold)
    first = hits[0][0]
    matches = {key: None for retrieval, _ in hits for key in retrieval.passages if key in accepted and key != gold}
    return Hop(gold, first.step, first.number, min(rank for _, rank in hits), first.recovery, tuple(matches))


def _rank(passages: tuple[str, ...], accepted: set[str]) -> int:
    return next((rank for rank, passage in enumerate(passages, start=1) if passage in accepted), 0)


def accepted_of(question: Question, trace: Trace) -> Iterator[tuple[str, set[str]]]:
    """Yield each gold passage with all ids that count as it.

    Args:
        question: Question with its gold passages.
        trace: Trace with the titles of passages, which identify HoVer's gold passages.
    """
    for gold in question.supporting:
        yield gold, {gold, *question.supporting_alt.get(gold, ())}
    if not question.supporting:
        for title in question.supporting_titles:
            yield title, {key for key, passage in trace.passages.items() if passage.title == title}


def retrievals(trace: Trace) -> Iterator[Retrieval]:
    """Yield retrievals in the order of the steps. A recovery's retrievals belong to the recovered step."""
    number = 0
    for step in trace.steps:
        if is_retrieval(step, trace):
            number += 0 if step.memo else 1
            yield Retrieval(step.id, max(number, 1), step.passages)
        for attempt in step.attempts[1:]:
            yield Retrieval(step.id, max(number, 1), attempt.passages, recovery=True)


def is_retrieval(step: Step, trace: Trace) -> bool:
    """Return True for steps that search: `retrieve`, even without a result, or another method's primitive.

    Args:
        step: Step of the trace.
        trace: Trace. Its method knows which of its primitives do not search.
    """
    if step.primitive in ("retrieve", "answer"):
        return step.primitive == "retrieve"
    if step.primitive in reading_primitives(trace):
        return False
    return step.answer is None and bool(step.passages) and step.mode != "data"  # "data" passages are a tool's sources


def ndcg_at(hops: tuple[Hop, ...], k: int) -> float | None:
    """Return the mean nDCG@k of the searches for each gold passage; None without gold passages.

    The nDCG of a search for one passage is 1 / log2(rank + 1) if the passage is among the first k, else 0. The trace's
    best search counts (OPERA, table 9).

    Args:
        hops: The gold passages.
        k: Rank to cut at.
    """
    if not hops:
        return None
    return sum(1 / math.log2(hop.rank + 1) for hop in hops if hop.rank is not None and hop.rank <= k) / len(hops)


def recall_at(hops: tuple[Hop, ...], k: int | None = None) -> float | None:
    """Return the share of gold passages among the first k passages of any retrieval; None without gold passages.

    Args:
        hops: The gold passages.
        k: Rank to cut at; None for everything retrieved.
    """
    if not hops:
        return None
    return sum(hop.rank is not None and (k is None or hop.rank <= k) for hop in hops) / len(hops)
