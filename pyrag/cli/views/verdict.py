"""Trust in an answer: the remark beside a weak answer, and what to try after an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyrag.cli.views.words import counted
from pyrag.trace.model import Step, Trace, shorten

# Of the embedded engine's answers to the bundled mini sets, 17 of 25 below this are right, and 79 of 81 of the others.
MIN_CONFIDENCE = 0.5
_SHOWN_TITLES = 3
_MAX_TOPK = 100


def confidence(trace: Trace) -> float | None:
    """Return the lowest confidence of the cited steps and the answer, in [0, 1]; None for engines that have none."""
    found = [step.answer.confidence for step in _cited_steps(trace) if step.answer]
    known = [one for one in (*found, trace.answer.confidence) if one is not None]
    return min(known, default=None)


def is_weak(trace: Trace) -> bool:
    """Return True for a known answer below `MIN_CONFIDENCE`."""
    sure = confidence(trace)
    return trace.answer.known and sure is not None and sure < MIN_CONFIDENCE


def remark(trace: Trace) -> str:
    """Return one sentence on a weak or unknown answer; empty for others, and where there is an error."""
    if trace.error:
        return ""
    if is_weak(trace):
        return _about_weak(trace)
    return "" if trace.answer.known else _about_unknown(trace)


def _cited_steps(trace: Trace) -> Iterator[Step]:
    cited = {citation.step for citation in trace.citations}
    return (step for step in trace.steps if step.id in cited)


def _about_weak(trace: Trace) -> str:
    steps = [step for step in _cited_steps(trace) if step.answer and step.answer.confidence is not None]
    weakest = min(steps, key=lambda step: (step.answer and step.answer.confidence) or 0.0, default=None)
    said = f"weak answer, confidence {confidence(trace):.2f}"
    if weakest and weakest.answer and len(steps) > 1:
        said += f", since {shorten(weakest.query, 80)!r} was answered {shorten(weakest.answer.text, 40)!r}"
    sources = _titles(trace, [citation.passage for citation in trace.citations])
    return f"{said}: check it in {sources}" if sources else f"{said}: check it elsewhere"


def _about_unknown(trace: Trace) -> str:
    searches = sum(step.primitive == "retrieve" for step in trace.steps)
    if not searches and trace.usage.tool_calls:
        calls = counted(trace.usage.tool_calls, "tool call")
        return f"unknown: {calls} and no search led to an answer; look at them with pyrag ask --trace FILE"
    if not searches:
        return "unknown, and nothing was searched: try a method that searches, such as --method pyrag"
    if not trace.passages:
        found = f"unknown: {counted(searches, 'search')} found no passage in {trace.retriever}"
        return f"{found}; try other words, or index documents about it (pyrag index)"
    found = f"unknown: {counted(searches, 'search')} found {counted(len(trace.passages), 'passage')}"
    titles = _titles(trace, trace.passages)
    open_steps = [step for step in trace.steps if step.answer and not step.answer.known]
    asked = f" answers {shorten(open_steps[-1].query, 80)!r}" if open_steps else " answers it"
    return f"{found} ({titles}), none of which{asked}{_evidence(open_steps)}; try {_cures(trace)}"


def _evidence(open_steps: list[Step]) -> str:
    answer = open_steps[-1].answer if open_steps else None
    return "" if answer is None or answer.confidence is None else f" (evidence {answer.confidence:.2f})"


def _titles(trace: Trace, ids: Iterable[str]) -> str:
    """Return the titles of the first few passages."""
    passages = [trace.passages[one] for one in ids if one in trace.passages]
    titles = list(dict.fromkeys(shorten(one.title or one.id, 40) for one in passages))
    return ", ".join(titles[:_SHOWN_TITLES]) + (", …" if len(titles) > _SHOWN_TITLES else "")


def _cures(trace: Trace) -> str:
    from pyrag.embedded.evidence import NOT_BELIEVED
    from pyrag.runtime.engines import about_embedded

    topk = max((step.topk or 0 for step in trace.steps), default=0)
    topk = max([topk, *(attempt.topk or 0 for step in trace.steps for attempt in step.attempts)])
    wider = f", --topk {min(2 * topk, _MAX_TOPK)}" if 0 < topk < _MAX_TOPK else ""
    if any(step.rationale.startswith(NOT_BELIEVED) for step in trace.steps):
        wider += f", a lower --least-evidence than {trace.config.get('least_evidence', 0.0):g}"
    if about_embedded(trace.engine):
        return f"other words{wider}, or a language model (--llm)"
    return f"other words{wider}, or --recovery boost+rewrite"
