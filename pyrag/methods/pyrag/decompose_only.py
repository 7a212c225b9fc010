"""Ablation: decomposition without a plan (paper, section 3.3). The sub-queries are answered, then combined.

Each sub-query is searched for and answered as written, so none can use the answer of another.
"""

from __future__ import annotations

from functools import partial

from pyrag.agents.passages import with_facts
from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.pyrag.method import decompose
from pyrag.methods.step_recorder import RecordedReply, RecordedSearch, StepRecorder
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer all sub-queries in parallel, then combine the answers; the answer of a single sub-query is final.

    Args:
        episode: Episode of the question.
        settings: Settings; `topk` passages are retrieved per sub-query.
    """
    await decompose(episode)
    queries = episode.sub_queries
    with StepRecorder(episode) as recorder:
        searches: list[RecordedSearch] = await recorder.together(
            partial(recorder.retrieve, query, settings.topk) for query in queries
        )
        replies: list[RecordedReply] = await recorder.together(
            partial(recorder.answer, query, search.passages, [search])
            for query, search in zip(queries, searches, strict=True)
        )
        if len(replies) == 1:
            return recorder.result(replies[0])
        facts = ". ".join(
            f"{query} {reply.answer.text}" for query, reply in zip(queries, replies, strict=True) if reply.answer
        )
        composed = await recorder.answer(with_facts(facts, episode.question), None, replies)
        return recorder.result(composed)


METHOD = Method(name="decompose-only", answer=answer)
