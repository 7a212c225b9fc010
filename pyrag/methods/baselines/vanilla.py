"""Single-step retrieval: one retrieval with the whole question, one answer (the paper's Vanilla RAG).

As in the paper, there is no recovery from an unknown answer unless the settings name a ladder (`recovery`). HERA's
paper uses ten passages for single-turn methods, and PyRAG's and OPERA's papers use five: `topk = 10` is HERA's setting.
"""

from __future__ import annotations

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result, answer_whole_question
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Run a program with one retrieval and one answer.

    Args:
        episode: State of the question.
        settings: Settings, of which `topk` is the number of passages.

    Raises:
        ProgramFailedError: The program failed.
    """
    return await answer_whole_question(episode, settings.topk)


METHOD = Method(name="vanilla", answer=answer, recovery="none")
