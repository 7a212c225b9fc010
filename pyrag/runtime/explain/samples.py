"""Sample passages of the corpus. Their sizes represent the passages that a program will read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyrag.errors import PyRAGError
from pyrag.retrieval.catalogue.protocol import count_documents, document_passages, has_catalogue, list_documents
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, passages_of
from pyrag.trace.model import Passage

_PLACES = 8  # places of the corpus from which documents are taken
_DOCUMENTS = 4  # documents from each place
_PASSAGES = 5  # passages of each document


@dataclass(frozen=True, slots=True)
class Samples:
    """Passages of a corpus.

    Attributes:
        documents: Number of documents that the filter passes; None if the retriever cannot count them.
        search_seconds: Seconds of a search; None if none was made.
    """

    passages: tuple[Passage, ...] = ()
    documents: int | None = None
    search_seconds: float | None = None


async def sample_passages(retriever: Retriever, where: Filter | None, query: str, topk: int) -> Samples:
    """Return passages from all parts of a corpus, or from one search if the retriever cannot list documents.

    Args:
        retriever: The retriever.
        where: Filter of the question.
        query: The question.
        topk: Number of passages per search.
    """
    try:
        if has_catalogue(retriever):
            return await _listed(retriever, where)
        began = time.perf_counter()
        passages = await passages_of(retriever, query, topk, where=where)
        return Samples(tuple(passages), None, time.perf_counter() - began)
    except PyRAGError:
        return Samples()  # the program itself will report the retriever's failure


async def _listed(retriever: Retriever, where: Filter | None) -> Samples:
    total = await count_documents(retriever, where)
    passages: list[Passage] = []
    end = 0
    for offset in sorted({total * place // _PLACES for place in range(_PLACES)}) if total else ():
        start, end = max(offset, end), offset + _DOCUMENTS  # places of a small corpus overlap
        for document in await list_documents(retriever, where, start, end - start):
            passages += (await document_passages(retriever, document.id, where))[:_PASSAGES]
    return Samples(tuple(passages), total)
