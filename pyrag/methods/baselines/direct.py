"""Direct inference: the model answers from what it knows, in one call without retrieval."""

from __future__ import annotations

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import AnswerReader, StepRecorder
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer in one model call, without passages.

    Args:
        episode: State of the question.
        settings: Not used. All methods have this signature.
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        read = AnswerReader(query=question)
        reply = await recorder.write("direct", {"question": question}, query=question, read=read, fault=read.fault)
        return recorder.result(reply)


METHOD = Method(name="direct", answer=answer, needs_writer=True)
