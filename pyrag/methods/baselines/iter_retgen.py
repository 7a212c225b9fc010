"""Iter-RetGen (Shao et al., 2023): retrieval with the question and the previous generation, generation, and again.

A generation is all that the Answer agent says, its rationale included, so that the method needs no Writer. One whose
answer is unknown still has a rationale: what it says of the passages goes into the next query. Where it says nothing,
asking the same again would change nothing, and the method ends early.
"""

from __future__ import annotations

from dataclasses import replace

from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import Said, StepRecorder
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN

ROUNDS = 2  # the paper's choice: further rounds gain little


async def answer(episode: Episode, settings: Settings) -> Result:
    """Retrieve and generate in turns; the last generation is the answer.

    Args:
        episode: The question under way.
        settings: `topk` passages per retrieval, at most `rounds` generations (`ROUNDS` if None).
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        said = await _generate(recorder, question, settings.topk)
        for _ in range((settings.rounds or ROUNDS) - 1):
            if not said.text:
                break
            said = await _generate(recorder, f"{question} {said.text}", settings.topk, said)
        return recorder.result(said)


async def _generate(recorder: StepRecorder, query: str, topk: int, *uses: Said) -> Said:
    found = await recorder.retrieve(query, topk, uses=uses)
    said = await recorder.answer(recorder.episode.question, found.passages, uses=[found])
    return said if said.known else replace(said, text=said.text.removesuffix(UNKNOWN).strip())


METHOD = Method(name="iter-retgen", answer=answer)
