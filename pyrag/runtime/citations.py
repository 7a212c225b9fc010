"""Citations of an answer, and of each item in a program's value."""

from __future__ import annotations

from dataclasses import replace

from pyrag.methods.program_result import Result
from pyrag.trace.model import UNKNOWN, Citation, Step

_RETRIEVING = ("retrieve", "open_document", "each")


def cite(steps: list[Step], sources: tuple[int, ...], *, searches: bool = False) -> tuple[Citation, ...]:
    """Return the passages cited by the steps that an answer depends on, each once, in the order of the steps.

    The sources of a tool's data count as cited, as do tables if no answer was read from passages.

    Args:
        steps: All steps of the question.
        sources: Ids of the steps that the answer depends on.
        searches: Whether the passages of a search count as cited too, if no other step among `sources` read them.
    """
    numbers: dict[str, Citation] = {}
    ids = set(sources)
    wanted = [step for step in steps if step.id in ids]
    read = {source for step in wanted for source in step.depends_on}
    answers = any(step.answer and step.answer.citations for step in wanted)
    for step in wanted:
        is_cited = (
            step.mode in ("data", "each")
            or (step.mode == "table" and not answers)
            or (searches and step.id not in read)
        )
        for passage in step.answer.citations if step.answer else step.passages if is_cited else ():
            numbers.setdefault(passage, Citation(len(numbers) + 1, passage, step.id))
    return tuple(numbers.values())


def citations_of(steps: list[Step], result: Result) -> tuple[tuple[Citation, ...], dict[str, tuple[int, ...]]]:
    """Return the citations of a result, and the numbers of the citations of each item of its value.

    If all items of a value name their passages, only these are cited.

    Args:
        steps: All steps of the question.
        result: The result, with the sources of its items.
    """
    if result.answer.text == UNKNOWN:
        return (), dict.fromkeys(result.items, ())
    rests_on_items = any(item.passages for item in result.items.values()) and not any(
        item.steps for item in result.items.values()
    )
    whole = () if rests_on_items else cite(steps, result.steps, searches=result.cites_searches)
    cited = {citation.passage: citation for citation in whole}
    passages: dict[str, list[str]] = {}
    for key, item in result.items.items():
        own = cite(steps, item.steps, searches=result.cites_searches)
        held = [Citation(0, passage, _step_of(steps, passage)) for passage in item.passages]
        passages[key] = [citation.passage for citation in (*held, *own)]
        for citation in (*held, *own):
            cited.setdefault(citation.passage, replace(citation, number=len(cited) + 1))
    numbers = {key: tuple(sorted({cited[passage].number for passage in ids})) for key, ids in passages.items()}
    return tuple(cited.values()), numbers


def _step_of(steps: list[Step], passage: str) -> int:
    """Return the id of the step that retrieved a passage."""
    return next((step.id for step in steps if step.primitive in _RETRIEVING and passage in step.passages), 0)
