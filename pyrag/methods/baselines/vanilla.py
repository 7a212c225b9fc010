"""Single-step retrieval: one retrieve with the whole question, one answer (the paper's Vanilla RAG).

As there, an unknown answer is the end: no recovery ladder is climbed unless the settings name one (`recovery`). HERA's
paper gives its single-turn methods ten passages, PyRAG's and OPERA's give five: `topk = 10` is HERA's setting.
"""

from __future__ import annotations

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result, answer_whole_question
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Run a program of one retrieval and one answer.

    Args:
        episode: The question under way.
        settings: `topk` is the number of passages.

    Raises:
        ProgramFailedError: the program failed.
    """
    return await answer_whole_question(episode, settings.topk)


METHOD = Method(name="vanilla", answer=answer, recovery="none")
