"""Direct inference: the model answers from what it knows, in one call without retrieval."""

from __future__ import annotations

from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.methods._drive import Driver, Reader
from pyrag.methods.base import Result

WRITES = True


async def answer(episode: Episode, settings: Settings) -> Result:
    question = episode.question
    with Driver(episode) as driver:
        read = Reader(query=question)
        said = await driver.write("direct", {"question": question}, query=question, read=read, fault=read.fault)
        return driver.result(said)
