"""Chain of thought (Wei et al., 2022): the model reasons step by step from what it knows, without retrieval."""

from __future__ import annotations

from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.methods._drive import Driver, reader
from pyrag.methods.base import Result

WRITES = True


async def answer(episode: Episode, settings: Settings) -> Result:
    question = episode.question
    with Driver(episode) as driver:
        said = await driver.write("cot", {"question": question}, query=question, read=reader())
        return driver.result(said)
