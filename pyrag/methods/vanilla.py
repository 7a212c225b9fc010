"""Single-step retrieval: one retrieve with the whole question, one answer (the paper's Vanilla RAG)."""

from __future__ import annotations

from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.errors import ProgramFailedError
from pyrag.events import Planned
from pyrag.methods.base import Failure, Result, execute
from pyrag.trace import UNPLANNED, Program


async def answer(episode: Episode, settings: Settings) -> Result:
    source = (
        f"question = {episode.question!r}\n"
        f"docs = retrieve(question, topk={settings.topk})\n"
        "final_answer = answer(question, docs)\n"
    )
    program = Program(source, planner="vanilla", origin=UNPLANNED)
    episode.observer(Planned(program))
    result = await execute(episode, program)
    if isinstance(result, Failure):
        raise ProgramFailedError(result.summary, cause=result.cause)
    return result
