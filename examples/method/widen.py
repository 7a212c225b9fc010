"""The method `widen`: answer from few passages, and read twice as many as long as the answer is unknown."""

from __future__ import annotations

from pyrag import Settings
from pyrag.extend import Episode, Method, Result, StepRecorder

FIRST, LAST = 1, 16


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer the question of an episode.

    Args:
        episode: The question, with the index, the agents and the limits.
        settings: The settings of the question. This method needs none.
    """
    with StepRecorder(episode) as recorder:
        topk = FIRST
        while True:
            retrieved = await recorder.retrieve(episode.question, topk)
            reply = await recorder.answer(episode.question, retrieved.passages, [retrieved])
            if reply.known or topk >= LAST or len(retrieved.passages) < topk:
                return recorder.result(reply)
            topk *= 2


METHOD = Method(name="widen", answer=answer)
