"""Ablation: decomposition without a plan (paper, section 3.3). The sub-queries are answered, then put together.

Each sub-query is retrieved and answered as it stands, so none can use another's answer.
"""

from __future__ import annotations

from functools import partial

from pyrag.agents.passages import given
from pyrag.episode.episode import Episode
from pyrag.methods.program_result import Result
from pyrag.methods.pyrag.method import decompose
from pyrag.methods.step_recorder import Found, Said, StepRecorder
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer all sub-queries side by side, then compose an answer from theirs; the answer of an only sub-query stands.

    Args:
        episode: The question under way.
        settings: `topk` passages per sub-query.
    """
    await decompose(episode)
    queries = episode.sub_queries
    with StepRecorder(episode) as recorder:
        found: list[Found] = await recorder.together(
            partial(recorder.retrieve, query, settings.topk) for query in queries
        )
        said: list[Said] = await recorder.together(
            partial(recorder.answer, query, one.passages, [one]) for query, one in zip(queries, found, strict=True)
        )
        if len(said) == 1:
            return recorder.result(said[0])
        facts = ". ".join(f"{query} {one.answer.text}" for query, one in zip(queries, said, strict=True) if one.answer)
        composed = await recorder.answer(given(facts, episode.question), None, said)
        return recorder.result(composed)
