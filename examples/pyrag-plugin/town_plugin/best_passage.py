"""The method `best-passage`: answers from the best passage alone."""

from __future__ import annotations

from pyrag import Settings
from pyrag.extend import Episode, Method, Result, StepRecorder


async def answer(episode: Episode, settings: Settings) -> Result:
    """Return the answer to the episode's question.

    Args:
        episode: The question.
        settings: Not used.
    """
    with StepRecorder(episode) as recorder:
        retrieved = await recorder.retrieve(episode.question, 1)
        reply = await recorder.answer(episode.question, retrieved.passages, [retrieved])
        return recorder.result(reply)


METHOD = Method(name="best-passage", answer=answer)
