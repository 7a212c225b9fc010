"""Ablation: a plan without execution (paper, section 3.3). The model answers from the plan and the documents.

The program is written as in PyRAG and kept in the trace, but never runs; the documents are retrieved for the whole
question.
"""

from __future__ import annotations

from pyrag.agents.passages import fenced_passages
from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.pyrag.method import write_program
from pyrag.methods.pyrag.speculative_execution import SpeculativeExecution
from pyrag.methods.step_recorder import AnswerReader, StepRecorder
from pyrag.settings import Settings


async def answer(episode: Episode, settings: Settings) -> Result:
    """Write a program, then answer in one model call from its text and the passages.

    Args:
        episode: Episode of the question.
        settings: Settings; `topk` passages are retrieved for the whole question, and `joint` works as in PyRAG.
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        program = await write_program(episode, settings, SpeculativeExecution(episode, on=False))
        episode.programs.append(program)
        search = await recorder.retrieve(question, settings.topk)
        fence, documents = fenced_passages(search.passages)
        read = AnswerReader(search.passages, question)
        reply = await recorder.write(
            "plan_only",
            {"question": question, "plan": program.source.strip(), "documents": documents, "fence": fence},
            query=question,
            uses=[search],
            passages=search.passages,
            read=read,
            fault=read.fault,
        )
        return recorder.result(reply)


METHOD = Method(name="plan-only", answer=answer, needs_writer=True)
