"""PyRAG: decompose, plan a program, execute it, and repair it using its errors (paper, sections 2.3 to 2.6)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pyrag.agents.protocol import Decomposition, Plan
from pyrag.episode.corpus.exhaustive import search_faults
from pyrag.episode.corpus.tables import offer_tables
from pyrag.episode.episode import Episode
from pyrag.episode.program_values import MAX_TOPK
from pyrag.episode.recovery import Boost, calls_of_step, merge
from pyrag.errors import BadOutputError, ProgramFailedError
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result, answer_whole_question
from pyrag.methods.pyrag.corpus_plans import offer_all_documents
from pyrag.methods.pyrag.last_answer import without_synthesis
from pyrag.methods.pyrag.speculative_execution import SpeculativeExecution
from pyrag.methods.repair import Draft, announce, problems, revise_after_checks, run_repaired
from pyrag.methods.step_recorder import RecordedSearch, StepRecorder
from pyrag.settings import Settings
from pyrag.trace.events import Decomposed
from pyrag.trace.model import UNKNOWN, Answer, Program, Usage


async def answer(episode: Episode, settings: Settings) -> Result:
    """Decompose the question, plan a program, run it and repair it.

    Args:
        episode: Episode of the question.
        settings: Settings of the question.

    Raises:
        BadOutputError: The planner wrote no program.
        ProgramFailedError: The last repair failed too.
    """
    offer_tables(episode)
    if not settings.whole_question or episode.flow.guards_searches:
        return await _by_programs(episode, settings)
    try:
        result = await _by_programs(episode, settings)
    except (BadOutputError, ProgramFailedError) as failure:
        episode.warn(str(failure))
        if episode.programs:
            episode.programs[-1] = replace(episode.programs[-1], error=str(failure))
        result = Result(Answer(UNKNOWN, known=False))
    cost = calls_of_step(episode.ladder)
    if (
        result.answer.known
        or result.reason
        or not episode.ledger.has_room_for(Usage(model_calls=cost, retrievals=cost))
    ):
        return result
    whole = await answer_whole_question(episode, settings.topk)
    return whole if whole.answer.known else result


async def _by_programs(episode: Episode, settings: Settings) -> Result:
    """Return the result of the planner's programs."""
    await offer_all_documents(episode, settings)
    async with SpeculativeExecution(episode, on=settings.stream and episode.gate is None) as ahead:
        revise = partial(_revise, episode, settings, ahead)
        written = await write_program(episode, settings, ahead)
        program = written
        if settings.plan_checks:
            program = await revise_after_checks(episode, written, revise, partial(problems, episode))
        result = await run_repaired(episode, program, revise, settings.repairs)
        if settings.plan_checks:
            last = [step for step in episode.steps if step.round == len(episode.programs) - 1]
            for fault in search_faults(episode.question, last, episode.primitives):
                episode.warn(f"plan check: {fault}")
    return await _once_more(episode, result)


async def decompose(episode: Episode) -> None:
    """Set the episode's sub-queries, unless they are already set."""
    if episode.sub_queries:
        return
    question = episode.question
    decomposition = await episode.requests.fresh(
        "decompose", {"question": question}, lambda: episode.agents.decomposer.decompose(question), Decomposition
    )
    episode.sub_queries = decomposition.sub_queries
    episode.observer(Decomposed(decomposition.sub_queries, decomposition.note))
    episode.keep_notes("decompose", decomposition)


async def write_program(episode: Episode, settings: Settings, ahead: SpeculativeExecution) -> Program:
    """Return the first program, with its sub-queries set on the episode.

    Args:
        episode: Episode of the question.
        settings: Settings; with `joint`, one call writes both the program and the sub-queries.
        ahead: Speculative execution, which runs the program while it is being written.
    """
    question = episode.question
    offered = _offered(episode)
    if not settings.joint:
        await decompose(episode)
        ahead.search(episode.sub_queries)
    sub_queries = None if settings.joint else list(episode.sub_queries)
    with ahead.watching() as planner:
        plan = await episode.requests.fresh(
            "plan",
            {"question": question, "sub_queries": sub_queries} | offered,
            lambda: planner.plan(question, sub_queries),
            Plan,
        )
    if settings.joint:
        episode.sub_queries = plan.sub_queries or (question,)
        episode.observer(Decomposed(episode.sub_queries))
    return announce(episode, _draft(episode, settings, plan, "plan"))


def _offered(episode: Episode) -> dict[str, Any]:
    """Return the part of a request that names tools and the type of the final value; empty without them."""
    typed = {} if episode.contract is None else {"returns": episode.contract.wanted}
    return {**({"tools": dict(episode.tools)} if episode.tools else {}), **typed}


def _draft(episode: Episode, settings: Settings, plan: Plan, origin: str) -> Draft:
    source = without_synthesis(plan.source, episode.question) if settings.synthesis == "needed" else plan.source
    return Draft(Program(source, planner=episode.agents.name, origin=origin), plan.note, plan.doubt)


async def _revise(
    episode: Episode, settings: Settings, ahead: SpeculativeExecution, program: Program, error: str, origin: str
) -> Draft:
    """Return the Plan agent's next program."""
    question, sub_queries = episode.question, list(episode.sub_queries)
    with ahead.watching() as planner:
        plan = await episode.requests.fresh(
            "repair",
            {"question": question, "sub_queries": sub_queries, "program": program.source, "error": error}
            | _offered(episode),
            lambda: planner.repair(question, sub_queries, program.source, error),
            Plan,
        )
    return _draft(episode, settings, plan, origin)


async def _once_more(episode: Episode, result: Result) -> Result:
    """Return a better result if the answer is unknown although all steps it depends on were answered; else the same."""
    boost = next((rung for rung in episode.ladder if isinstance(rung, Boost)), None)
    if result.answer.known or result.reason or boost is None:
        return result
    steps = [step for step in episode.steps if step.id in result.steps]
    searches = {(step.query, step.where): step.topk or episode.topk for step in steps if step.primitive == "retrieve"}
    cost = Usage(model_calls=1, retrievals=len(searches))
    if not searches or any(step.attempts for step in steps) or not episode.ledger.has_room_for(cost):
        return result
    with StepRecorder(episode) as recorder:
        boosted: list[RecordedSearch] = await recorder.together(
            partial(recorder.retrieve, query, min(boost.deeper(topk), MAX_TOPK), where=where)
            for (query, where), topk in searches.items()
        )
        passages = merge(*(search.passages for search in boosted))
        reply = await recorder.answer(episode.question, passages, boosted)
        return recorder.result(reply) if reply.known else result


METHOD = Method(name="pyrag", answer=answer, calls_tools=True)
