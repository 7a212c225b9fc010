"""Checks of a catalogue: what `pyrag.retrieval.catalogue.protocol.Catalogue` promises, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pyrag.errors import ServiceError
from pyrag.retrieval.catalogue.protocol import Catalogue, CatalogueDocument
from pyrag.retrieval.checked import checked
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.tree import Filter
from pyrag.testing.checks import expect, shown
from pyrag.trace.model import Passage

_ODD_IDS = ("", "\x00", "../../etc/passwd", "' OR 1=1 --", "x" * 5_000, "星河 👍", "\ud800")
_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class CatalogueCase:
    """Retriever with a catalogue.

    Attributes:
        catalogue: The object, with at most 10,000 documents. The checks leave it open.
        where: Filter that some of its documents pass and others do not; empty if its passages have no metadata.
    """

    catalogue: Catalogue
    where: str = ""

    @property
    def filter(self) -> Filter | None:
        """The filter in the form passed to the catalogue."""
        return parsed(self.where) if self.where else None

    async def documents(self, where: Filter | None = None) -> list[CatalogueDocument]:
        """Return all documents that a filter passes."""
        return await self.catalogue.list_documents(where, 0, _LIMIT)


async def returns_document_records(case: CatalogueCase) -> None:
    """Check that a page is a list of records with ids and counts."""
    documents = await case.documents()
    expect(isinstance(documents, list), f"list_documents() returned a {type(documents).__name__}: return a list")
    expect(documents, "it has no documents: give the case a catalogue with some")
    for document in documents:
        expect(
            isinstance(document, CatalogueDocument),
            f"it returned {shown(document)}: return pyrag.extend.CatalogueDocument",
        )
        expect(isinstance(document.id, str) and document.id, f"the id {shown(document.id)} is not a text")
        expect(document.passages >= 1, f"the document {shown(document.id)} has no passages: leave it out")


async def counts_what_it_lists(case: CatalogueCase) -> None:
    """Check that counts are exact, with the filter and without."""
    for where in (None, case.filter):
        count, documents = await case.catalogue.count_documents(where), await case.documents(where)
        expect(count == len(documents), f"it counts {count} documents and lists {len(documents)}: counts must be exact")


async def lists_each_document_once(case: CatalogueCase) -> None:
    """Check that each document is listed once, with a unique id."""
    ids = [document.id for document in await case.documents()]
    expect(len(set(ids)) == len(ids), f"an id is there twice among {shown(ids)}: open_document() could mean either")


async def pages_join_to_the_whole(case: CatalogueCase) -> None:
    """Check that pages of any size are parts of the same stable order."""
    whole = await case.documents()
    for size in (1, 2, max(len(whole) - 1, 1)):
        pages: list[CatalogueDocument] = []
        for offset in range(0, min(len(whole), 50), size):
            page = await case.catalogue.list_documents(None, offset, size)
            expect(len(page) <= size, f"a page of {size} holds {len(page)} documents: cut it")
            pages += page
        expect(pages == whole[: len(pages)], f"pages of {size} are in another order than the whole list")
    beyond = await case.catalogue.list_documents(None, len(whole), 5)
    expect(beyond == [], f"beyond the last document there is {shown(beyond)}: return an empty list")


async def opens_what_it_lists(case: CatalogueCase) -> None:
    """Check that each document opens with as many passages as its record states."""
    for document in (await case.documents())[:20]:
        passages = await case.catalogue.document_passages(document.id, None)
        good = isinstance(passages, list) and all(isinstance(passage, Passage) for passage in passages)
        expect(good, f"document_passages() returned {shown(passages)}: return a list of pyrag.Passage")
        expect(not checked(passages, len(passages)).notes, f"pyrag had to mend passages of {shown(document.id)}")
        count = len(passages)
        expect(count == document.passages, f"{shown(document.id)} opens with {count} passages, not {document.passages}")


async def obeys_filters(case: CatalogueCase) -> None:
    """Check that excluded passages do not show anywhere: in lists, counts, titles or opened documents."""
    where = case.filter
    if where is None:
        return
    every, passing = await case.documents(), await case.documents(where)
    expect(
        0 < len(passing) < len(every), f"{case.where!r} passes {len(passing)} of {len(every)} documents: take another"
    )
    for document in passing:
        passages = await case.catalogue.document_passages(document.id, where)
        leaked = [passage.id for passage in passages if not where.matches(passage.metadata)]
        expect(not leaked, f"the filter excludes {shown(leaked)}, and document_passages() returned them")
        expect(len(passages) == document.passages, f"{shown(document.id)} counts passages that the filter excludes")
        expect(
            where.matches(document.metadata), f"the metadata of {shown(document.id)} is not of a passage that passes"
        )
    hidden = {document.id for document in every} - {document.id for document in passing}
    for name in list(hidden)[:20]:
        opened = await case.catalogue.document_passages(name, where)
        expect(opened == [], f"the filter excludes the document {shown(name)}, and it opens: return an empty list")


async def opens_nothing_for_unknown_ids(case: CatalogueCase) -> None:
    """Check that ids from a program, which may be any text, find nothing and do no harm."""
    known = {document.id for document in await case.documents()}
    for name in _ODD_IDS:
        if name in known:
            continue
        try:
            opened = await case.catalogue.document_passages(name, None)
        except ServiceError:
            continue
        except Exception as error:
            problem = f"the id {shown(name)} raised {type(error).__name__}: escape it, or return an empty list"
            raise AssertionError(problem) from error
        expect(opened == [], f"the id {shown(name)} opened {shown(opened)}")


CATALOGUE_CHECKS: tuple[Callable[[CatalogueCase], Awaitable[None]], ...] = (
    returns_document_records,
    counts_what_it_lists,
    lists_each_document_once,
    pages_join_to_the_whole,
    opens_what_it_lists,
    obeys_filters,
    opens_nothing_for_unknown_ids,
)
