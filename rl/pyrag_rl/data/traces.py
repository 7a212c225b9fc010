"""Rows from a run of `pyrag bench`: what each agent was asked on the way to its answers, asked again word for word.

What a trained predecessor leaves behind is what the next agent meets: MAPGRPO's stages read the runs of the stage
before (OPERA, equation 6). A row's `reply`, where there is one, is what the agent came to in a question that came out
right. Left out: which rows end up in which file (`build`).

Data sets label whole questions, rarely their sub-questions: a step is labelled only where the question's labels settle
it, and is left out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag.evaluation.metrics import exact_match
from pyrag.evaluation.runs.folder import read_run
from pyrag.evaluation.scoring import ResultRow
from pyrag.methods.opera.protocol import planned_goals
from pyrag.trace.model import UNPLANNED, Answer, Attempt, Passage, Step, Trace
from pyrag_rl.data.contract import BROKEN, under_contract
from pyrag_rl.data.examples import (
    PromptlessRow,
    ask_analysis,
    ask_answer,
    ask_decomposition,
    ask_goals,
    ask_joint_program,
    ask_program,
    ask_rewrite,
    documents_of,
)
from pyrag_rl.data.replies import (
    answer_reply,
    goals_reply,
    joint_reply,
    judgement_reply,
    program_reply,
    rewrite_reply,
    sub_queries_reply,
)
from pyrag_rl.data.rows import TrainRow


@dataclass(frozen=True, slots=True)
class Label:
    """`answers` are the spellings that count; those of the question where the documents do not suffice."""

    sufficient: bool
    answers: tuple[str, ...]


def _label(row: ResultRow, attempt: Attempt) -> Label | None:
    """Label an attempt, where the labels of its question settle it.

    It is sufficient for a right question answered from a gold passage; insufficient where no gold passage is among the
    documents and no right answer was read.
    """
    answer, golds = attempt.answer, {hop.gold for hop in row.support}
    if answer is None or not golds:
        return None
    hit = not golds.isdisjoint(attempt.passages)
    if answer.known and row.em == 1.0:
        return Label(True, _accepted(row, answer)) if hit else None
    return None if hit else Label(False, row.gold)


def _accepted(row: ResultRow, answer: Answer) -> tuple[str, ...]:
    """Return the accepted spellings of a right step's answer."""
    return row.gold if exact_match(answer.text, row.gold) else (answer.text,)


def read_examples(run: Path, task: str, methods: Sequence[str] = ()) -> Iterator[PromptlessRow]:
    """Yield all examples of a task that a run holds, question by question.

    Args:
        run: a folder of `pyrag bench`.
        task: a key of `EXAMPLES`.
        methods: methods whose traces are read; all, if empty.

    Raises:
        DataError: the folder is no run.
    """
    opened = read_run(run)
    for row in opened.rows:
        if row.gold and (not methods or row.method in methods):
            yield from EXAMPLES[task](row, opened.trace(row))


def _row(row: ResultRow, agent: str, **more: Any) -> TrainRow:
    fields = {"answers": row.gold, "hops": row.hops, **more}
    supporting = fields.pop("supporting", tuple(hop.gold for hop in row.support))
    return TrainRow(
        index=0,
        id=row.id,
        agent=agent,
        source=row.set,
        question=row.question,
        messages=(),
        supporting=supporting,
        **fields,
    )


def _right(row: ResultRow) -> bool:
    return row.em == 1.0


def _readings(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Answer rows with documents: steps of right questions, as they were answered in the end."""
    for step in _answered(trace) if _right(row) else ():
        last = step.tries[-1]
        if step.mode == "evidence" and last.answer and last.answer.known and last.passages:
            passages = _passages(trace, last)
            yield PromptlessRow(
                _row(
                    row,
                    "answer",
                    query=step.query,
                    documents=documents_of(passages),
                    answers=_accepted(row, last.answer),
                ),
                ask_answer(step.query, passages),
                answer_reply(last.answer, _cited(last)),
            )


def _syntheses(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Answer rows without documents: steps of right questions that composed an answer from facts."""
    for step in _answered(trace) if _right(row) else ():
        if step.mode == "aggregation" and step.answer and step.answer.known:
            yield PromptlessRow(
                _row(row, "answer", query=step.query, answers=_accepted(row, step.answer)),
                ask_answer(step.query, None),
                answer_reply(step.answer, step.rationale),
            )


def _judgements(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Analysis-Answer rows: every attempt whose documents are known to suffice or not."""
    for step in _answered(trace):
        for attempt in step.tries if step.mode == "evidence" else ():
            found = _label(row, attempt)
            if found is None or not attempt.passages:
                continue
            passages = _passages(trace, attempt)
            agrees = attempt.answer is not None and attempt.answer.known == found.sufficient
            yield PromptlessRow(
                _row(
                    row,
                    "answer",
                    query=step.query,
                    documents=documents_of(passages),
                    answers=found.answers,
                    sufficient=found.sufficient,
                ),
                ask_analysis(step.query, passages, trace.question),
                judgement_reply(attempt) if agrees else "",
            )


def _rewrites(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Rewrite rows: every failed attempt that left gold passages to be found, with the queries so far."""
    golds = [hop.gold for hop in row.support]
    for step in _answered(trace):
        made = step.tries
        tried = [*_searches(trace, step), step.query]
        for place, attempt in enumerate(made):
            if attempt.policy == "rewrite":
                tried.append(attempt.query)
            open_golds = tuple(gold for gold in golds if gold not in attempt.passages)
            if attempt.answer is None or attempt.answer.known or not open_golds or len(tried) < 2:
                continue
            passages, missing = _passages(trace, attempt), attempt.missing or attempt.rationale
            following = made[place + 1] if place + 1 < len(made) else None
            yield PromptlessRow(
                _row(
                    row,
                    "rewrite",
                    query=step.query,
                    documents=documents_of(passages),
                    supporting=open_golds,
                    tried=tuple(tried),
                    missing=missing,
                ),
                ask_rewrite(step.query, tuple(tried), passages, missing),
                rewrite_reply(following) if following and _right(row) and _helped(following) else "",
            )


def _decompositions(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Decompose rows; the reply is set where the question came out right."""
    if trace.sub_queries and not planned_goals(trace):
        yield PromptlessRow(
            _row(row, "decompose"),
            ask_decomposition(trace.question),
            sub_queries_reply(trace.sub_queries) if _right(row) else "",
        )


def _programs(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Plan rows: the first program, from the sub-queries that it was written for.

    As in the release, a question whose Decompose agent gave no list has none: it stood in for its sub-queries itself.
    """
    if "decompose" in trace.fallbacks:
        return
    for source, fault, mended in _first_programs(row, trace):
        yield PromptlessRow(
            _row(row, "plan", sub_queries=trace.sub_queries),
            ask_program(trace.question, trace.sub_queries),
            program_reply(source) if source else "",
            fault,
            mended,
        )


def _joint_programs(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Plan rows of joint mode: sub-queries and first program in one reply."""
    for source, fault, mended in _first_programs(row, trace):
        reply = joint_reply(source, trace.sub_queries) if source else ""
        yield PromptlessRow(_row(row, "plan"), ask_joint_program(trace.question), reply, fault, mended)


def _first_programs(row: ResultRow, trace: Trace) -> Iterator[tuple[str, str, bool]]:
    """The first program as it should be learnt ("": not at all), why it should not be, and whether it was mended."""
    if not trace.sub_queries or planned_goals(trace) or not trace.programs:
        return
    first = trace.programs[0]
    if not _right(row) or len(trace.programs) > 1 or first.origin == UNPLANNED:
        yield "", "", False
        return
    source = under_contract(first.source)
    yield source or "", "" if source else BROKEN, source not in (None, first.source)


def _plans(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield rows of OPERA's Plan agent."""
    learnt = _right(row) and planned_goals(trace) and len(trace.programs) == 1
    yield PromptlessRow(
        _row(row, "plan"),
        ask_goals(trace.question),
        goals_reply(planned_goals(trace), trace.programs[0].rationale) if learnt else "",
    )


def _searches(trace: Trace, step: Step) -> list[str]:
    """Return the queries that found a step's first passages, as its recovery saw them."""
    given = set(step.tries[0].passages)
    found = [one for one in trace.steps if one.id in step.depends_on and one.primitive == "retrieve"]
    exact = [one for one in found if set(one.passages) == given]
    return list(dict.fromkeys(one.query for one in exact[:1] or [one for one in found if given & set(one.passages)]))


def _helped(attempt: Attempt) -> bool:
    return attempt.policy == "rewrite" and attempt.answer is not None and attempt.answer.known


def _answered(trace: Trace) -> Iterable[Step]:
    return (step for step in trace.steps if step.primitive == "answer" and step.answer and not step.memo)


def _passages(trace: Trace, attempt: Attempt) -> tuple[Passage, ...]:
    return tuple(trace.passages[one] for one in attempt.passages)


def _cited(attempt: Attempt) -> str:
    """The rationale of an answer, naming its documents where it did not say them itself."""
    assert attempt.answer is not None
    numbers = [place for place, one in enumerate(attempt.passages, start=1) if one in attempt.answer.citations]
    named = all(f"Doc [{number}]" in attempt.rationale for number in numbers)
    return attempt.rationale if named else f"{attempt.rationale} {' '.join(f'Doc [{number}]' for number in numbers)}"


# Rows of a question, by task: (its score with its gold passages, its trace) -> rows.
EXAMPLES: dict[str, Callable[[ResultRow, Trace], Iterator[PromptlessRow]]] = {
    "answer": _readings,
    "synthesis": _syntheses,
    "decompose": _decompositions,
    "plan": _programs,
    "joint": _joint_programs,
    "goals": _plans,
    "analysis": _judgements,
    "rewrite": _rewrites,
}
