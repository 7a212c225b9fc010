"""Confidence of an answer, derived from the steps that it depends on.

An answer of several steps is right only if each of them is, so its confidence is the product of theirs
(docs/notes/own-documents.md). A call of `each` counts as one step. A total over its rows cannot be surer than its
weakest row, and it lacks the rows without an answer, so the call's confidence is the lowest of its rows, times the
share of items that were answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pyrag.trace.model import Step, Trace


def confidence(trace: Trace) -> float | None:
    """Return the confidence of an answer, in [0, 1]; None if neither the answer nor a step behind it has one."""
    steps = steps_behind(trace)
    values = [_product(steps)] if steps else []
    return min((value for value in (*values, trace.answer.confidence) if value is not None), default=None)


def steps_behind(trace: Trace) -> list[Step]:
    """Return the steps whose confidences make up the confidence of an answer.

    These are the known answers, and the calls of `each`, with a confidence that the trace's answer depends on; in
    traces without `depends_on`, the cited ones. Of a list or dict whose items have citations of their own, they are the
    steps behind the item with the lowest confidence.
    """
    ids = set(trace.depends_on) or {citation.step for citation in trace.citations}
    steps = [step for step in trace.steps if step.id in ids and _has_confidence(step)]
    parts = _by_item(trace, steps) if trace.item_citations else [steps]
    return min(filter(None, map(_distinct, parts)), key=_product, default=[])


def _has_confidence(step: Step) -> bool:
    if step.coverage is not None:
        return step.coverage.confidence is not None
    return step.answer is not None and step.answer.known and step.answer.confidence is not None


def confidence_of(step: Step) -> float:
    """Return the confidence of a step's answer or of its rows, in [0, 1]; 1 without a confidence."""
    if step.coverage is not None:
        share = step.coverage.answered / max(step.coverage.total, 1)
        return share * max(0.0, min(1.0, 1.0 if step.coverage.confidence is None else step.coverage.confidence))
    value = 1.0 if step.answer is None or step.answer.confidence is None else step.answer.confidence
    return max(0.0, min(1.0, value))


def _product(steps: Iterable[Step]) -> float:
    return round(math.prod(map(confidence_of, steps)), 4)


def _distinct(steps: Iterable[Step]) -> list[Step]:
    """Return the steps, of which those with the same query and answer count once, with their lowest confidence."""
    lowest: dict[tuple[str, str], Step] = {}
    for step in sorted(steps, key=confidence_of):
        lowest.setdefault((step.query, step.answer.text if step.answer else ""), step)
    return sorted(lowest.values(), key=lambda step: step.id)


def _by_item(trace: Trace, steps: Sequence[Step]) -> list[list[Step]]:
    """Return the steps behind each item that has citations, and each remaining step by itself."""
    cited = {citation.number: citation.step for citation in trace.citations}
    items = [
        _with_sources(trace, {cited[number] for number in numbers if number in cited})
        for numbers in trace.item_citations.values()
    ]
    remaining = [step for step in steps if not any(step.id in item for item in items)]
    return [*([step for step in steps if step.id in item] for item in items), *([step] for step in remaining)]


def _with_sources(trace: Trace, ids: set[int]) -> set[int]:
    """Return ids of steps, with the ids of all steps that these depend on, directly or through others."""
    needs = {step.id: step.depends_on for step in trace.steps}
    sources, waiting = set[int](), list(ids)
    while waiting:
        if (number := waiting.pop()) not in sources:
            sources.add(number)
            waiting += needs.get(number, ())
    return sources
