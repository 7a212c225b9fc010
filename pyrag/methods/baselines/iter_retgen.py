"""Iter-RetGen (Shao et al., 2023): retrieval with question and previous generation, in turn with generation.

A generation is the Answer agent's whole reply with its rationale, so that the method needs no Writer. Even if the
answer is unknown, the rationale becomes part of the next query. If the reply is empty, the next query would be the
same, so the method ends early.
"""

from __future__ import annotations

from dataclasses import replace

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import RecordedReply, StepRecorder
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN

ROUNDS = 2  # the paper's choice: further rounds gain little


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer by retrieving and generating in turns; the last generation is the answer.

    Args:
        episode: State of the question.
        settings: Settings, of which `topk` is the number of passages per retrieval and `rounds` the maximum number of
            generations (`ROUNDS` if None).
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        generation = await _generate(recorder, question, settings.topk)
        for _ in range((settings.rounds or ROUNDS) - 1):
            if not generation.text:
                break
            generation = await _generate(recorder, f"{question} {generation.text}", settings.topk, generation)
        return recorder.result(generation)


async def _generate(recorder: StepRecorder, query: str, topk: int, *uses: RecordedReply) -> RecordedReply:
    retrieved = await recorder.retrieve(query, topk, uses=uses)
    generation = await recorder.answer(recorder.episode.question, retrieved.passages, uses=[retrieved])
    return generation if generation.known else replace(generation, text=generation.text.removesuffix(UNKNOWN).strip())


METHOD = Method(name="iter-retgen", answer=answer)
