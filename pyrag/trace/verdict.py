"""Trust in an answer: whether and why it is weak, and advice after a weak or unknown answer.

All surfaces (command line, Python, HTTP, MCP, the page) take their sentences from here; they differ in the names of
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pyrag.trace.confidence import confidence, confidence_of, steps_behind
from pyrag.trace.model import BUNDLED_CORPUS, MIN_CONFIDENCE, NO_VALUE, NOT_BELIEVED, Step, Trace, shorten
from pyrag.trace.words import counted

_SHOWN_TITLES = 3
MAX_TOPK = 100
_TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".parquet")
_COMPUTED = re.compile(
    r"\bhow (?:many|much|often)\b|\b(?:number|amount|count|sum|average|mean|median|difference) (?:of|between)\b"
    r"|\b(?:totals?|altogether|overall|average|combined|per cent|percentage)\b|\bin (?:all|sum)\b"
    r"|\b(?:most|least|fewest|highest|lowest|largest|smallest|biggest|longest|shortest|maximum|minimum|top)\b"
    r"|\b(?:more|fewer|less|higher|lower|larger|smaller|bigger|greater|longer|shorter)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Surface:
    """Way of asking questions, which determines how advice is worded.

    Attributes:
        kind: Form of the names of settings.
        index: Name of the index that callers of a service use.
        widest: Largest topk that a caller may request.
        bundled: Whether the service's index is the bundled corpus.
    """

    kind: Literal["command line", "python", "service"]
    index: str = ""
    widest: int = MAX_TOPK
    bundled: bool = False

    def name(self, setting: str) -> str:
        """Return the name of a setting on this surface."""
        return f"--{setting.replace('_', '-')}" if self.kind == "command line" else setting

    def setting(self, setting: str, value: object) -> str:
        """Return a setting with a value, as written on this surface.

        Args:
            setting: Name of the setting in `pyrag.Settings`.
            value: Value of the setting.
        """
        return f"{self.name(setting)}{'=' if self.kind == 'python' else ' '}{value}"


COMMAND_LINE = Surface("command line")
PYTHON = Surface("python")
_OWN_DOCUMENTS = {
    "command line": "an index of your own documents (pyrag index FOLDER, then --index)",
    "python": "an index of your own documents (pyrag index FOLDER, then retriever=INDEX)",
    "service": "a server with an index of your own documents (pyrag serve --index)",
}
_MODEL = {
    "command line": "a language model (--llm)",
    "python": "a language model (llm=…)",
    "service": "a server with a language model (pyrag serve --llm)",
}
_WITH_TOOLS = {
    "command line": "a language model with tools (--llm … --tools table:FOLDER or --tools sql:FILE)",
    "python": 'a language model with tools (llm=…, tools=["table:FOLDER"] or ["sql:FILE"])',
    "service": "a server with a language model and tools (pyrag serve --llm … --tools table:FOLDER or sql:FILE)",
}


def judged(trace: Trace, surface: Surface = PYTHON) -> Trace:
    """Return the trace with the verdict on its answer.

    Args:
        trace: Trace of a finished question.
        surface: Surface on which the remark will be shown.
    """
    trace = with_confidence(trace)
    weak, sentence = is_weak(trace), remark(trace, surface)
    is_new = (weak, sentence) != (trace.weak, trace.remark)
    return replace(trace, weak=weak, remark=sentence) if is_new else trace


def with_confidence(trace: Trace) -> Trace:
    """Return the trace with the confidence of its known answer, derived from the steps that it depends on."""
    if not trace.answer.known or (sure := confidence(trace)) == trace.answer.confidence:
        return trace
    return replace(trace, answer=replace(trace.answer, confidence=sure))


def is_weak(trace: Trace) -> bool:
    """Return True for a known answer with a confidence below `MIN_CONFIDENCE`."""
    sure = confidence(trace)
    return trace.answer.known and sure is not None and sure < MIN_CONFIDENCE


def remark(trace: Trace, surface: Surface = PYTHON) -> str:
    """Return one sentence about a weak or unknown answer; empty for other answers or if there is an error.

    Args:
        trace: Trace of a finished question.
        surface: Surface on which the sentence will be shown.
    """
    if trace.error:
        return ""
    if is_weak(trace):
        return _about_weak(trace, surface)
    return "" if trace.answer.known else _about_unknown(trace, surface)


def is_embedded(trace: Trace) -> bool:
    """Return True if no language model took part, so that rules and a small reader answered."""
    return trace.engine.partition(":")[0] == "embedded"


def _about_weak(trace: Trace, surface: Surface) -> str:
    sentence = f"weak answer, confidence {confidence(trace):.2f}{_weakest(trace)}"
    sources = _titles(trace, [citation.passage for citation in trace.citations])
    sentence += f": check it in {sources}" if sources else ": check it elsewhere"
    computes = f"; for sums, counts and comparisons over tables try {_WITH_TOOLS[surface.kind]}"
    return sentence + (computes if _needs_tools(trace) else "")


def _weakest(trace: Trace) -> str:
    """Return the reason for a low confidence of several steps or rows: the weakest step, or the number of weak rows."""
    steps = steps_behind(trace)
    step = min(steps, key=confidence_of, default=None)
    if step is not None and (rows := step.coverage):
        counts = [f"{rows.weak_answers} ({shorten(step.query, 80)!r})"]
        counts += [f"{rows.total - rows.answered:,} of {rows.total:,} {rows.what} have no answer"]
        return ", since " + " and ".join(counts[not rows.weak : 1 + (rows.answered < rows.total)])
    if step is None or len(steps) < 2:
        return ""
    query, text = shorten(step.query, 80), shorten(step.answer.text if step.answer else "", 40)
    if confidence_of(step) < MIN_CONFIDENCE:
        return f", since {query!r} was answered {text!r}"
    return f", since it takes {len(steps)} answers, of which the weakest is {text!r} to {query!r}"


def _about_unknown(trace: Trace, surface: Surface) -> str:
    searches = sum(step.primitive == "retrieve" for step in trace.steps)
    if reason := next((text.removeprefix(NO_VALUE) for text in trace.warnings if text.startswith(NO_VALUE)), ""):
        return f"unknown: {reason}"
    if not searches and trace.usage.tool_calls:
        where = "look at the trace" if surface.kind == "service" else "look at them with pyrag ask --trace FILE"
        return f"unknown: {counted(trace.usage.tool_calls, 'tool call')} and no search led to an answer; {where}"
    if not searches and trace.method == "program":
        return (
            "unknown, and the program searched nothing: pass passages to answer(), as in answer(query, retrieve(query))"
        )
    if not searches:
        method = surface.setting("method", "pyrag")
        return f"unknown, and nothing was searched: try a method that searches, such as {method}"
    searched = f"unknown: {counted(searches, 'search')} of {_index(trace, surface)} found"
    if not trace.passages:
        return f"{searched} no passage; try {_either(_cures_of_search(trace, surface))}"
    open_steps = [step for step in trace.steps if step.answer and not step.answer.known]
    asked = repr(shorten(open_steps[-1].query, 80)) if open_steps else "it"
    verb = "none of which answers" if len(trace.passages) > 1 else "which does not answer"
    passages = f"{counted(len(trace.passages), 'passage')} ({_titles(trace, trace.passages)})"
    return f"{searched} {passages}, {verb} {asked}{_evidence(open_steps)}; try {_either(_cures(trace, surface))}"


def _index(trace: Trace, surface: Surface) -> str:
    """Return the name of the searched index. The bundled corpus is described, since users did not choose it."""
    if _is_bundled(trace, surface):
        option = {"command line": " without --index", "python": " without retriever"}.get(surface.kind, "")
        named = f"as the index {surface.index}" if surface.index else f"the default{option}"
        return f"pyrag's {BUNDLED_CORPUS} ({named})"
    return f"the index {surface.index}" if surface.index else (trace.index and trace.index.name) or trace.retriever


def _is_bundled(trace: Trace, surface: Surface) -> bool:
    return (
        surface.bundled
        or BUNDLED_CORPUS in trace.retriever
        or (trace.index is not None and BUNDLED_CORPUS in trace.index.name)
    )


def _evidence(open_steps: list[Step]) -> str:
    answer = open_steps[-1].answer if open_steps else None
    return "" if answer is None or answer.confidence is None else f" (evidence {answer.confidence:.2f})"


def _titles(trace: Trace, ids: Iterable[str]) -> str:
    """Return the titles of the first few passages."""
    passages = [trace.passages[key] for key in ids if key in trace.passages]
    titles = list(dict.fromkeys(shorten(passage.title or passage.id, 40) for passage in passages))
    return ", ".join(titles[:_SHOWN_TITLES]) + (", …" if len(titles) > _SHOWN_TITLES else "")


def _cures_of_search(trace: Trace, surface: Surface) -> list[str]:
    """Return advice for a search without results."""
    own = (
        _OWN_DOCUMENTS[surface.kind] if _is_bundled(trace, surface) else "documents about it in the index (pyrag index)"
    )
    return ["other words", *_wider_filter(trace, surface), own]


def _cures(trace: Trace, surface: Surface) -> list[str]:
    """Return advice for a case in which passages were found but do not contain the answer."""
    cures = ["other words", *([_OWN_DOCUMENTS[surface.kind]] if _is_bundled(trace, surface) else [])]
    cures += _wider_filter(trace, surface)
    if (topk := _larger_topk(trace, surface)) is not None:
        cures.append(surface.setting("topk", topk))
    if any(step.rationale.startswith(NOT_BELIEVED) for step in trace.steps):
        limit = trace.config.get("least_evidence") or 0.0
        cures.append(f"a lower {surface.name('least_evidence')} than {limit:g}")
    return [*cures, *filter(None, [_last_cure(trace, surface)])]


def _wider_filter(trace: Trace, surface: Surface) -> list[str]:
    """Return advice about the filter. In a service, some filters are unknown to the caller."""
    where = trace.config.get("where")
    return [f"a wider filter than {shorten(str(where), 80)}"] if where and surface.kind != "service" else []


def _either(cures: list[str]) -> str:
    return cures[0] if len(cures) == 1 else f"{', '.join(cures[:-1])}, or {cures[-1]}"


def _last_cure(trace: Trace, surface: Surface) -> str:
    """Return advice about the engine or its recovery; empty if there is none."""
    if _needs_tools(trace):
        return f"for sums, counts and comparisons over tables {_WITH_TOOLS[surface.kind]}"
    if is_embedded(trace):
        return _MODEL[surface.kind]
    recovery = str(trace.config.get("recovery", ""))
    if "boost" in recovery and "rewrite" in recovery:
        return ""
    asked = surface.setting("recovery", "boost+rewrite")
    return asked if surface.kind != "service" else f"a server that rewrites queries (its setting {asked})"


def _needs_tools(trace: Trace) -> bool:
    """Return True for a sum, count or comparison over tables that no tool of the question could compute."""
    if trace.config.get("tools") or trace.usage.tool_calls or not _COMPUTED.search(trace.question):
        return False
    return any(passage.source.lower().endswith(_TABLES) for passage in trace.passages.values())


def _larger_topk(trace: Trace, surface: Surface) -> int | None:
    """Return the topk to try next; None if there are no more passages, or more may not be requested."""
    open_step = next((step for step in reversed(trace.steps) if step.answer and not step.answer.known), None)
    searches = [step for step in trace.steps if step.primitive == "retrieve"]
    if open_step is not None:
        needed = [step for step in searches if step.id in open_step.depends_on]
        searches = needed or searches
    widest = max((topk for topk, _ in _searched(searches, open_step, trace)), default=0)
    total = trace.index.passages if trace.index else None
    is_exhausted = total is not None and (widest >= total or len(trace.passages) >= total)
    is_short = all(brought < topk for topk, brought in _searched(searches, open_step, trace) if topk == widest)
    larger = min(2 * widest, MAX_TOPK, surface.widest)
    return None if is_exhausted or is_short or larger <= widest else larger


def _searched(searches: list[Step], open_step: Step | None, trace: Trace) -> Iterator[tuple[int, int]]:
    """Yield topk and number of passages for each search, including a step's recovery searches."""
    yield from ((step.topk or 0, len(step.passages)) for step in searches)
    if open_step is None:
        return
    yield from ((attempt.topk, len(attempt.passages)) for attempt in open_step.attempts if attempt.topk)
    # A boost without new passages is not an attempt; only its event is kept.
    read = {attempt.topk for attempt in open_step.attempts}
    boost = {"event": "recovering", "step": open_step.id, "policy": "boost"}
    topks = [event.get("topk") for event in trace.events if boost.items() <= event.items()]
    yield from ((topk, len(open_step.passages)) for topk in topks if isinstance(topk, int) and topk not in read)
