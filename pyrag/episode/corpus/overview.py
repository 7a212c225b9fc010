"""Overview of the documents that a question may see, requested once per question under the caller's filter."""

from __future__ import annotations

from pyrag.agents.corpus.overview import CorpusOverview, overview_of
from pyrag.episode.corpus.catalogue import MAX_DOCUMENTS
from pyrag.episode.episode import Episode
from pyrag.episode.requests import CATALOGUE
from pyrag.retrieval.catalogue.protocol import count_documents, has_catalogue, list_documents

ROLE = f"{CATALOGUE}overview"
"""Role of the request, by which a replay knows that it was made."""


def can_list(episode: Episode) -> bool:
    """Return True if the retriever lists its documents; in a replay, True if the recording has an overview."""
    recording = episode.ledger.recording
    return has_catalogue(episode.retriever) if recording is None else recording.holds(ROLE)


async def corpus_overview(episode: Episode) -> CorpusOverview:
    """Return the overview of the documents that the caller's filter passes.

    Args:
        episode: Episode of the question.

    Raises:
        ServiceError: The retriever failed.
    """
    request = {} if episode.where is None else {"where": str(episode.where)}

    async def run() -> CorpusOverview:
        total = await count_documents(episode.retriever, episode.where)
        documents = await list_documents(episode.retriever, episode.where, 0, MAX_DOCUMENTS)
        return overview_of(
            total,
            (document.metadata for document in documents),
            [document.source for document in documents],
            [document.title for document in documents],
        )

    overview, _ = await episode.ask(ROLE, request, run, CorpusOverview)
    return overview
