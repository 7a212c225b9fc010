"""Single-step retrieval: one retrieve with the whole question, one answer (the paper's Vanilla RAG).

As there, an unknown answer is the end: no recovery ladder is climbed unless the settings name one (`recovery`). HERA's
paper gives its single-turn methods ten passages, PyRAG's and OPERA's give five: `topk = 10` is HERA's setting.
"""

from __future__ import annotations

from pyrag.episode.episode import Episode
from pyrag.errors import ProgramFailedError
from pyrag.methods.program_result import Failure, Result, execute
from pyrag.settings import Settings
from pyrag.trace.events import Planned
from pyrag.trace.model import UNPLANNED, Program

RECOVERY = "none"


async def answer(episode: Episode, settings: Settings) -> Result:
    """Run a program of one retrieval and one answer.

    Args:
        episode: The question under way.
        settings: `topk` is the number of passages.

    Raises:
        ProgramFailedError: the program failed.
    """
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
