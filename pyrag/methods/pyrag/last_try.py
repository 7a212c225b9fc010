"""The last try at a final answer that is unknown: the question itself, over more of the passages that it rests on.

The authors' release runs a program again with a deeper search where its final answer is a refusal and no step of it had
been recovered. Here the searches are made deeper, and the Answer agent reads what they find for the whole question.
"""

from __future__ import annotations

from functools import partial

from pyrag.episode.episode import Episode
from pyrag.episode.primitive_args import MAX_TOPK
from pyrag.episode.recovery import Boost
from pyrag.episode.recovery_runner import merge
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import Found, StepRecorder
from pyrag.trace.model import Usage


async def once_more(episode: Episode, result: Result) -> Result:
    """The result, or a better one where its answer is unknown though every step it rests on was answered."""
    boost = next((rung for rung in episode.ladder if isinstance(rung, Boost)), None)
    if result.answer.known or boost is None:
        return result
    steps = [step for step in episode.steps if step.id in result.steps]
    searches = {step.query: step.topk or episode.topk for step in steps if step.primitive == "retrieve"}
    cost = Usage(model_calls=1, retrievals=len(searches))
    if not searches or any(step.attempts for step in steps) or not episode.ledger.has_room_for(cost):
        return result
    with StepRecorder(episode) as recorder:
        found: list[Found] = await recorder.together(
            partial(recorder.retrieve, query, min(boost.deeper(topk), MAX_TOPK)) for query, topk in searches.items()
        )
        passages = merge(*(one.passages for one in found))
        said = await recorder.answer(episode.question, passages, found)
        return recorder.result(said) if said.known else result
