"""Rows of the Plan and Decompose agents from gold decompositions, with the replies to learn."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyrag_rl.data.answer_readings import ReadingMix
from pyrag_rl.data.decompositions.answer_examples import READING_TASKS, reading_examples
from pyrag_rl.data.decompositions.faults import broken
from pyrag_rl.data.decompositions.nesting import Nesting
from pyrag_rl.data.decompositions.planned_questions import SOURCES as PLANNED
from pyrag_rl.data.decompositions.planned_questions import planned_questions
from pyrag_rl.data.decompositions.program_checks import ProgramCheck
from pyrag_rl.data.decompositions.programs import GoldProgram, UncoveredFormError, program_of
from pyrag_rl.data.decompositions.qdmr import as_questions
from pyrag_rl.data.decompositions.source import GoldQuestion, chosen, read_caps, read_decompositions, read_gold_passages
from pyrag_rl.data.decompositions.wording import asked_of
from pyrag_rl.data.examples import PromptlessRow, ask_decomposition, ask_joint_program, ask_program, ask_repair
from pyrag_rl.data.replies import joint_reply, program_reply, sub_queries_reply
from pyrag_rl.data.rows import TrainRow

GOLD_TASKS = ("joint", "plan", "decompose", *READING_TASKS)
"""Tasks for which gold decompositions have rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRequest:
    """Choice of questions from a folder of decompositions.

    `splits` lists the splits to use; empty for all. `sources` lists sources by the beginning of their names, each
    optionally with a maximum number of questions ("2wiki=2000"); empty for all. `repairs` is the share of questions
    with an additional row in which a failing program is repaired. `singles` is the share of questions whose first step
    becomes a question of its own. Rows of rare kinds of questions are written up to `repeats` times. `nested` is the
    share of questions, including those made in this way, to which a longer question is added (see `nesting`). `planned`
    is the number of questions of each source to add with sub-questions of the embedded planner (see
    `planned_questions`). `mix` controls the passages over which the steps are answered.
    """

    folder: Path
    splits: Sequence[str] = ()
    sources: Sequence[str] = ()
    seed: int = 0
    repairs: float = 0.0
    singles: float = 0.0
    repeats: int = 1
    nested: float = 0.0
    planned: int = 0
    mix: ReadingMix = ReadingMix()
    concurrency: int = 4


async def gold_examples(
    request: GoldRequest, tasks: Sequence[str], dropped: Counter[str]
) -> AsyncIterator[list[PromptlessRow]]:
    """Yield the rows of each question. Rows of programs are only made if the program passed its check.

    Args:
        request: Choice of questions.
        tasks: Tasks from `GOLD_TASKS`.
        dropped: Counter of questions without rows, by reason and source; increased by this function.

    Raises:
        DataError: The folder has no decompositions.
        UsageError: A source is unknown.
    """
    everything = read_decompositions(request.folder)
    questions = chosen(everything, request.splits, read_caps(request.sources), request.seed)
    passages = read_gold_passages(request.folder)
    if set(tasks) <= set(READING_TASKS):
        async for rows in reading_examples(questions, passages, tasks, request.mix, dropped):
            yield rows
        return
    questions += _nested(questions, request)
    questions += planned_questions(request.folder, request.planned, request.seed)
    check, times = ProgramCheck(passages), repeats_of(questions, request.repeats)
    try:
        for group in _groups(questions, request.concurrency):
            made = list(map(_in_form, group))
            for question, reason in zip(group, made, strict=True):
                if isinstance(reason, str):
                    dropped[f"{reason} ({question.source})"] += 1
                    yield []
            ready = [question for question in made if isinstance(question, GoldQuestion)]
            # The steps of planned questions have placeholders for answers.
            answered = [question for question in ready if question in group and question.source not in PLANNED]
            ready += [
                _first_step(question) for question in answered if _draw(request, "single", question) < request.singles
            ]
            programs = await asyncio.gather(*(_program(question, check) for question in ready))
            for question, program in zip(ready, programs, strict=True):
                if isinstance(program, str):
                    dropped[f"{program} ({question.source})"] += 1
                    yield []
                else:
                    copies = times.get((question.source, question.kind), 1)  # a first step has no kind
                    rows = [replace(_example(task, question, program), copies=copies) for task in tasks]
                    yield [*rows, *await _repairs(question, program, request, check)]
    finally:
        await check.aclose()


def _nested(questions: Sequence[GoldQuestion], request: GoldRequest) -> list[GoldQuestion]:
    """Return additional questions with one and with two more searches."""
    nesting, nested_questions = Nesting(questions, request.seed), []
    again: Sequence[GoldQuestion] = questions
    for _ in range(2):
        drawn = (nesting.nested(question) for question in again if _draw(request, "nest", question) < request.nested)
        again = [question for question in drawn if question is not None]
        nested_questions += again
    return nested_questions


def repeats_of(questions: Sequence[GoldQuestion], limit: int) -> dict[tuple[str, str], int]:
    """Return how often the rows of each source and kind are written, so that rare kinds count as much as common ones.

    Args:
        questions: The chosen questions.
        limit: Maximum number of times.
    """
    counts = Counter((question.source, question.kind) for question in questions)
    greatest: dict[str, int] = {}
    for (source, _), count in counts.items():
        greatest[source] = max(greatest.get(source, 0), count)
    return {key: min(limit, greatest[key[0]] // count) for key, count in counts.items()}


def _groups(questions: Sequence[GoldQuestion], size: int) -> Iterator[Sequence[GoldQuestion]]:
    yield from (questions[start : start + size] for start in range(0, len(questions), size))


async def _program(question: GoldQuestion, check: ProgramCheck) -> GoldProgram | str:
    """Return the program of a question, or the reason why there is no program to learn from."""
    try:
        program = program_of(question.question, question.sub_questions)
    except UncoveredFormError as error:
        return str(error)
    return await check.fault(question, program) or program


def _in_form(question: GoldQuestion) -> GoldQuestion | str:
    """Return a question whose steps are questions with answers, or the reason why this is impossible."""
    if question.form == "qdmr":
        try:
            return as_questions(question)
        except UncoveredFormError as error:
            return str(error)
    return question if all(step.gold for step in question.sub_questions) else "a step has no gold answer"


def _first_step(question: GoldQuestion) -> GoldQuestion:
    """Return the first step as a question of its own, which needs one search."""
    step = question.sub_questions[0]
    return replace(
        question, id=f"{question.id}-1", question=asked_of(step), answers=(step.gold,), sub_questions=(step,), type=""
    )


def _draw(request: GoldRequest, what: str, question: GoldQuestion) -> float:
    """Return a random number from 0 to 1 for a question."""
    return random.Random(f"{request.seed}:{what}:{question.source}:{question.id}").random()  # noqa: S311  no secret


async def _repairs(
    question: GoldQuestion, program: GoldProgram, request: GoldRequest, check: ProgramCheck
) -> list[PromptlessRow]:
    """Return a row that repairs a broken program, if the draw selects the question and the fault has an effect."""
    if _draw(request, "repair", question) >= request.repairs:
        return []
    draw = random.Random(f"{request.seed}:fault:{question.source}:{question.id}")  # noqa: S311  a draw, no secret
    source = broken(program, draw)
    _, fault = await check.run(question, program, source)
    if fault is None:
        return []
    ask = ask_repair(question.question, fault.sub_queries, source, fault.error)
    return [PromptlessRow(_row(question, "plan"), ask, program_reply(program.source))]


def _row(question: GoldQuestion, agent: str, **more: Any) -> TrainRow:
    return TrainRow(
        index=0,
        id=question.id,
        agent=agent,
        source=question.source,
        question=question.question,
        answers=question.answers,
        messages=(),
        **more,
    )


def _example(task: str, question: GoldQuestion, program: GoldProgram) -> PromptlessRow:
    asked, queries = question.question, program.questions
    match task:
        case "joint":
            ask, reply = ask_joint_program(asked), joint_reply(program.source, queries)
        case "plan":
            ask, reply = ask_program(asked, queries), program_reply(program.source)
        case _:
            ask, reply = ask_decomposition(asked), sub_queries_reply(queries)
    agent = "decompose" if task == "decompose" else "plan"
    row = _row(question, agent, sub_queries=queries if task == "plan" else (), hops=len(queries))
    return PromptlessRow(row, ask, reply)
