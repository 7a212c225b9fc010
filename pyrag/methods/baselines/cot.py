"""Chain of thought (Wei et al., 2022): the model reasons step by step from what it knows, without retrieval."""

from __future__ import annotations

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import AnswerReader, StepRecorder
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer in one model call that reasons first, without passages.

    Args:
        episode: State of the question.
        settings: Not used. All methods have this signature.
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        read = AnswerReader(query=question)
        reply = await recorder.write("cot", {"question": question}, query=question, read=read, fault=read.fault)
        return recorder.result(reply)


METHOD = Method(name="cot", answer=answer, needs_writer=True)
