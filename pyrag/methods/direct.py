"""Direct inference: the model answers from what it knows, in one call without retrieval."""

from __future__ import annotations

from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.methods._drive import Driver, reader
from pyrag.methods.base import Result

WRITES = True


async def answer(episode: Episode, settings: Settings) -> Result:
    question = episode.question
    with Driver(episode) as driver:
        said = await driver.write("direct", {"question": question}, query=question, read=reader())
        return driver.result(said)
