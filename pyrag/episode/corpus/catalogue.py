"""Requests to a retriever's catalogue for a question: counted, recorded and replayed, under the caller's filter."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from pyrag.agents.context_window import reading_sections
from pyrag.episode.episode import Episode
from pyrag.episode.requests import CATALOGUE, FREE
from pyrag.retrieval.catalogue.protocol import (
    CatalogueDocument,
    NoCatalogueError,
    count_documents,
    document_passages,
    list_documents,
)
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.trace.model import Passage, shorten

MAX_DOCUMENTS = 5_000
"""Documents that one call may list, and items that one call of `each` takes."""

_MAX_HEADINGS = 20  # headings that a message lists
_SECTION = " > "  # between the headings above a passage


@dataclass(frozen=True, slots=True)
class Listed:
    """Reply to `documents` and `count`. It has no documents if there are more than `MAX_DOCUMENTS`.

    Attributes:
        total: Exact number of documents.
        problem: Reason why the catalogue cannot answer; empty if it did.
    """

    total: int = 0
    documents: list[CatalogueDocument] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OpenedPart:
    """Part of a document.

    Attributes:
        passages: Passages of the part in reading order.
        sections: Number of parts that the document was cut into.
        problem: Reason why the part does not exist; empty if it does.
        note: Sentence about missing passages; empty if the part is complete.
    """

    passages: list[Passage] = field(default_factory=list)
    sections: int = 0
    problem: str = ""
    note: str = ""


async def counted(episode: Episode, where: Filter | None) -> tuple[Listed, bool]:
    """Return the number of documents, and True if the same request had been made before.

    Args:
        episode: Episode of the question.
        where: The program's filter, which narrows the caller's.

    Raises:
        FilterError: The program's filter cannot match anything.
    """
    bound, request = _bound(episode, where)
    return await episode.ask(f"{CATALOGUE}count", request, partial(_count, episode, where, bound), Listed)


async def listed(episode: Episode, where: Filter | None) -> tuple[Listed, bool]:
    """Return the documents, and True if the same request had been made before.

    Args:
        episode: Episode of the question.
        where: The program's filter, which narrows the caller's.

    Raises:
        FilterError: The program's filter cannot match anything.
    """
    bound, request = _bound(episode, where)
    reply, memo = await episode.ask(f"{CATALOGUE}documents", request, partial(_list, episode, where, bound), Listed)
    if bound is None:
        return reply, memo
    passing = [
        document for document in reply.documents if bound.matches(document.metadata)
    ]  # a recording may have been edited
    return Listed(reply.total, passing, reply.problem), memo


async def opened(
    episode: Episode, document: str, section: int | str = 1, *, keep: bool = True
) -> tuple[OpenedPart, bool]:
    """Return a part of a document, and True if the same request had been made before.

    Args:
        episode: Episode of the question.
        document: Id of the document.
        section: Number of the part, from 1, or the text of a heading.
        keep: Whether the request counts as a retrieval and its reply stays in the memo.
    """
    bound, request = _bound(episode, None)
    request |= {"document": document, "section": section}
    role = f"{CATALOGUE if keep else FREE}open"
    reply, memo = await episode.ask(role, request, partial(_open, episode, document, section, bound), OpenedPart)
    if not keep:
        episode.memo.forget(role, request)
    if bound is not None:
        passing = [passage for passage in reply.passages if bound.matches(passage.metadata)]
        reply = OpenedPart(passing, reply.sections, reply.problem, reply.note)
    return reply, memo


def _bound(episode: Episode, where: Filter | None) -> tuple[Filter | None, dict[str, int | str]]:
    """Combine the program's filter with the caller's; return the result and the request that includes it."""
    bound = all_of(episode.where, where)
    return bound, {} if bound is None else {"where": str(bound)}


async def _count(episode: Episode, where: Filter | None, bound: Filter | None) -> Listed:
    if where is not None:
        await episode.judge(where)
    try:
        return Listed(await count_documents(episode.retriever, bound))
    except NoCatalogueError as error:
        return Listed(problem=str(error))


async def _list(episode: Episode, where: Filter | None, bound: Filter | None) -> Listed:
    counted = await _count(episode, where, bound)
    if counted.problem or counted.total > MAX_DOCUMENTS:
        return counted
    documents = await list_documents(episode.retriever, bound, 0, MAX_DOCUMENTS)
    return Listed(len(documents), documents)


async def _open(episode: Episode, document: str, section: int | str, bound: Filter | None) -> OpenedPart:
    try:
        passages = await document_passages(episode.retriever, document, bound)
    except NoCatalogueError as error:
        return OpenedPart(problem=str(error))
    if not passages:
        return OpenedPart(
            problem=f"there is no document {shorten(document)!r}: take one that documents() returned, or its id"
        )
    answerer = episode.agents.answerer
    if isinstance(section, int):
        sections = await reading_sections(answerer, passages)
        return OpenedPart(sections[section - 1] if section <= len(sections) else [], len(sections))
    wanted = _under(passages, section)
    if not wanted:
        return OpenedPart(problem=_no_heading(document, section, passages))
    parts = await reading_sections(answerer, wanted)
    missing = len(wanted) - len(parts[0])
    note = f"{missing} passages under {section!r} of {document!r} did not fit: open them by number" if missing else ""
    return OpenedPart(parts[0], len(parts), note=note)


def _under(passages: list[Passage], heading: str) -> list[Passage]:
    """Return the passages under a heading; if none is equal, those under headings that contain the text."""
    folded = heading.strip().casefold()
    paths = [(passage, [part.strip().casefold() for part in passage.title.split(_SECTION)]) for passage in passages]
    exact = [passage for passage, path in paths if folded in path]
    return exact or [passage for passage, path in paths if folded and any(folded in part for part in path)]


def _no_heading(document: str, heading: str, passages: list[Passage]) -> str:
    headings = list(dict.fromkeys(passage.title.rpartition(_SECTION)[2] for passage in passages))
    more = f" and {len(headings) - _MAX_HEADINGS} more" if len(headings) > _MAX_HEADINGS else ""
    shown = ", ".join(map(repr, headings[:_MAX_HEADINGS]))
    return f"{document!r} has no section {heading!r}: its headings are {shown}{more}; or give a number, from 1"
