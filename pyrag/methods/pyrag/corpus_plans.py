"""Plans over all documents: their primitives, and an overview of the documents for the agents that plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyrag.episode.corpus.overview import can_list, corpus_overview
from pyrag.episode.corpus.primitives import offer_corpus
from pyrag.episode.episode import Episode
from pyrag.retrieval.protocol import name_of
from pyrag.settings import Settings


async def offer_all_documents(episode: Episode, settings: Settings) -> None:
    """Let planned programs access all documents, if the settings or the question require it.

    Without the setting `corpus`, only a planner that recognises that no search can answer the question gets access.

    Args:
        episode: Episode of the question.
        settings: Settings of the question.
    """
    if not _is_wanted(episode, settings):
        return
    with_corpus = getattr(episode.agents.planner, "with_corpus", None)
    if not can_list(episode):
        if settings.corpus:
            name = name_of(episode.retriever)
            episode.warn(f"the retriever {name} cannot list its documents, so programs only search: use an index")
        return
    if with_corpus is None:
        episode.warn(
            f"the planner of {episode.agents.name} cannot read all documents: name a language model with --llm"
        )
        return
    overview = await corpus_overview(episode)
    episode.flow.describe_documents()
    with_rules = getattr(episode.agents.decomposer, "with_corpus", None)
    decomposer = episode.agents.decomposer if with_rules is None else with_rules(overview)
    episode.agents = replace(episode.agents, planner=with_corpus(overview), decomposer=decomposer)
    offer_corpus(episode, settings.max_in_flight)


def _is_wanted(episode: Episode, settings: Settings) -> bool:
    """Return True if the settings or the question require all documents; a replay follows its recording."""
    if episode.ledger.recording is not None:
        return can_list(episode)
    needs_corpus: Callable[[str], bool] | None = getattr(episode.agents.planner, "needs_corpus", None)
    return settings.corpus or (needs_corpus is not None and needs_corpus(episode.question))
