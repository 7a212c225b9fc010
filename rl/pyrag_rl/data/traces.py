"""Rows from a run of `pyrag bench`: the requests to each agent on the way to its answers, repeated verbatim.

The output of a trained agent is the input of the next: the stages of MAPGRPO read the runs of the stage before (OPERA,
equation 6). A row's `reply`, if it has one, is the agent's result in a question that was answered correctly. `build`
decides which rows go into which file.

Data sets label whole questions and rarely their sub-questions. A step is therefore only labelled if the question's
labels determine its label; otherwise, it is skipped.
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
    """Label of an attempt.

    Attributes:
        sufficient: Whether the documents contain the answer.
        answers: Accepted spellings of the answer; if the documents are insufficient, the question's gold answers.
    """

    sufficient: bool
    answers: tuple[str, ...]


def _label(row: ResultRow, attempt: Attempt) -> Label | None:
    """Return the label of an attempt; None if the labels of its question do not determine it.

    An attempt is sufficient if it answers a correctly answered question from a gold passage, and insufficient if no
    gold passage is among its documents and it gives no right answer.
    """
    answer, golds = attempt.answer, {hop.gold for hop in row.support}
    if answer is None or not golds:
        return None
    hit = not golds.isdisjoint(attempt.passages)
    if answer.known and row.em == 1.0:
        return Label(True, _accepted(row, answer)) if hit else None
    return None if hit else Label(False, row.gold)


def _accepted(row: ResultRow, answer: Answer) -> tuple[str, ...]:
    """Return the accepted spellings of the answer to a correct step."""
    return row.gold if exact_match(answer.text, row.gold) else (answer.text,)


def read_examples(run: Path, task: str, methods: Sequence[str] = ()) -> Iterator[PromptlessRow]:
    """Yield all examples of a task in a run, question by question.

    Args:
        run: Folder of `pyrag bench`.
        task: Key of `EXAMPLES`.
        methods: Methods whose traces are read; empty for all.

    Raises:
        DataError: The folder is not a run.
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
    """Yield Answer rows with documents: steps of correctly answered questions, with their final answers."""
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
    """Yield Answer rows without documents: steps of correctly answered questions that composed an answer from facts."""
    for step in _answered(trace) if _right(row) else ():
        if step.mode == "aggregation" and step.answer and step.answer.known:
            yield PromptlessRow(
                _row(row, "answer", query=step.query, answers=_accepted(row, step.answer)),
                ask_answer(step.query, None),
                answer_reply(step.answer, step.rationale),
            )


def _judgements(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Analysis-Answer rows: every attempt whose documents are known to suffice or not to suffice."""
    for step in _answered(trace):
        for attempt in step.tries if step.mode == "evidence" else ():
            label = _label(row, attempt)
            if label is None or not attempt.passages:
                continue
            passages = _passages(trace, attempt)
            agrees = attempt.answer is not None and attempt.answer.known == label.sufficient
            yield PromptlessRow(
                _row(
                    row,
                    "answer",
                    query=step.query,
                    documents=documents_of(passages),
                    answers=label.answers,
                    sufficient=label.sufficient,
                ),
                ask_analysis(step.query, passages, trace.question),
                judgement_reply(attempt) if agrees else "",
            )


def _rewrites(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Rewrite rows: every failed attempt that missed gold passages, with the queries so far."""
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
    """Yield Decompose rows. The reply is set if the question was answered correctly."""
    if trace.sub_queries and not planned_goals(trace):
        yield PromptlessRow(
            _row(row, "decompose"),
            ask_decomposition(trace.question),
            sub_queries_reply(trace.sub_queries) if _right(row) else "",
        )


def _programs(row: ResultRow, trace: Trace) -> Iterator[PromptlessRow]:
    """Yield Plan rows: the first program, from the sub-queries that it was written for.

    As in the release, a question whose Decompose agent failed has no row, because the question was its own sub-query.
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
    """Yield Plan rows of joint mode: sub-queries and the first program in one reply."""
    for source, fault, mended in _first_programs(row, trace):
        reply = joint_reply(source, trace.sub_queries) if source else ""
        yield PromptlessRow(_row(row, "plan"), ask_joint_program(trace.question), reply, fault, mended)


def _first_programs(row: ResultRow, trace: Trace) -> Iterator[tuple[str, str, bool]]:
    """Yield the first program to learn (empty for none), the reason if there is none, and whether it was adapted."""
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
    """Return the queries of the searches that a step depends on and that found the passages of its first try."""
    first_passages = set(step.tries[0].passages)
    searches = [
        candidate for candidate in trace.steps if candidate.id in step.depends_on and candidate.primitive == "retrieve"
    ]
    exact = [search for search in searches if set(search.passages) == first_passages]
    return list(
        dict.fromkeys(
            search.query
            for search in exact[:1] or [search for search in searches if first_passages & set(search.passages)]
        )
    )


def _helped(attempt: Attempt) -> bool:
    return attempt.policy == "rewrite" and attempt.answer is not None and attempt.answer.known


def _answered(trace: Trace) -> Iterable[Step]:
    return (step for step in trace.steps if step.primitive == "answer" and step.answer and not step.memo)


def _passages(trace: Trace, attempt: Attempt) -> tuple[Passage, ...]:
    return tuple(trace.passages[key] for key in attempt.passages)


def _cited(attempt: Attempt) -> str:
    """Return the rationale of an answer, with the numbers of its documents if it does not name them."""
    assert attempt.answer is not None
    numbers = [place for place, key in enumerate(attempt.passages, start=1) if key in attempt.answer.citations]
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
