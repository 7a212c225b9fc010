"""Catalogue over several sources, which lists the documents of one source after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyrag.retrieval.catalogue.protocol import (
    CatalogueDocument,
    NoCatalogueError,
    count_documents,
    document_passages,
    has_catalogue,
    list_documents,
)
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.fusion.origin import ORIGIN, rest_for
from pyrag.retrieval.protocol import Retriever, fetch_passages
from pyrag.trace.model import Passage


@dataclass(frozen=True, slots=True)
class FusedSource:
    """Source of a fused retriever.

    Attributes:
        name: Name in ids, filters and notes.
        retriever: Retriever of the source.
        weight: Weight in the ranking, relative to the other sources.
        deadline: Seconds after which a search continues without the source.
    """

    name: str
    retriever: Retriever
    weight: float = 1.0
    deadline: float = 10.0


class FusedDocuments:
    """The three methods of `Catalogue`, and `fetch`, over several sources.

    Each source whose documents a filter may pass must have a catalogue; without one source's documents, the list would
    be wrong.
    """

    _sources: Mapping[str, FusedSource]

    @property
    def has_catalogue(self) -> bool:
        return any(has_catalogue(source.retriever) for source in self._sources.values())

    async def count_documents(self, where: Filter | None) -> int:
        """Return the number of documents of all sources.

        Raises:
            NoCatalogueError: A source whose documents the filter may pass cannot list them.
        """
        return sum([await count_documents(source.retriever, rest) for source, rest in self._listed(where)])

    async def list_documents(self, where: Filter | None, offset: int, limit: int) -> list[CatalogueDocument]:
        """Return a page of the documents.

        Args:
            where: Filter that documents must pass; None for all.
            offset: Number of documents to skip.
            limit: Maximum number of documents.

        Raises:
            NoCatalogueError: A source whose documents the filter may pass cannot list them.
        """
        page: list[CatalogueDocument] = []
        for source, rest in self._listed(where):
            if len(page) >= limit:
                break
            documents = await list_documents(source.retriever, rest, offset, limit - len(page))
            page += [
                replace(item, id=f"{source.name}:{item.id}", metadata={**item.metadata, ORIGIN: source.name})
                for item in documents
            ]
            if offset and not documents:
                offset -= min(offset, await count_documents(source.retriever, rest))
            else:
                offset = 0
        return page

    async def document_passages(self, document: str, where: Filter | None) -> list[Passage]:
        """Return the passages of a document.

        Args:
            document: Id of the document, prefixed with the name of its source.
            where: Filter that passages must pass; None for all.

        Raises:
            NoCatalogueError: The document's source cannot list its documents.
        """
        name, own = self._owner(document)
        rest = rest_for(where, name) if name else False
        if rest is False:
            return []
        source = self._sources[name]
        _refuse_without_catalogue(source)
        return [with_origin(passage, name) for passage in await document_passages(source.retriever, own, rest)]

    async def fetch(self, ids: Sequence[str]) -> list[Passage] | None:
        """Return the passages that have these ids; None if no source can look up ids.

        Args:
            ids: Ids of passages, each prefixed with the name of its source.
        """
        passages: list[Passage] = []
        can_look_up = False
        owners = [self._owner(key) for key in ids]
        for name, source in self._sources.items():
            fetched = await fetch_passages(source.retriever, [own for owner, own in owners if owner == name])
            can_look_up |= fetched is not None
            passages += [with_origin(passage, name) for passage in fetched or ()]
        return passages if can_look_up else None

    def _owner(self, key: str) -> tuple[str, str]:
        """Return the name of an id's source, and the id in that source; the name is empty if no source has the id."""
        longest = sorted(self._sources, key=len, reverse=True)
        name = next((name for name in longest if key.startswith(f"{name}:")), "")
        return name, key[len(name) + 1 :] if name else key

    def _listed(self, where: Filter | None) -> Iterator[tuple[FusedSource, Filter | None]]:
        """Yield the sources whose documents a filter may pass, each with the rest of the filter.

        Raises:
            NoCatalogueError: One of these sources cannot list its documents.
        """
        listed = [
            (source, rest) for name, source in self._sources.items() if (rest := rest_for(where, name)) is not False
        ]
        for source, _ in listed:
            _refuse_without_catalogue(source)
        yield from listed


def with_origin(passage: Passage, name: str) -> Passage:
    """Return a source's passage with the source's name added to its id and its metadata.

    Args:
        passage: Passage of the source.
        name: Name of the source.
    """
    return replace(passage, id=f"{name}:{passage.id}", metadata={**passage.metadata, ORIGIN: name})


def _refuse_without_catalogue(source: FusedSource) -> None:
    if not has_catalogue(source.retriever):
        raise NoCatalogueError(
            f"the source {source.name} cannot list its documents: search it with retrieve(), or leave it out with a "
            f'filter such as {ORIGIN} != "{source.name}"'
        )
