"""Rows of the Answer agent from gold decompositions: steps over gold passages, and conclusions from all answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.trace.model import Answer, Passage
from pyrag_rl.data.answer_readings import ReadingMix, gold_reading, whole_reading
from pyrag_rl.data.decompositions.programs import concluding_query
from pyrag_rl.data.decompositions.source import GoldQuestion
from pyrag_rl.data.decompositions.wording import asked_of, filled
from pyrag_rl.data.examples import PromptlessRow, ask_answer, documents_of
from pyrag_rl.data.replies import answer_reply
from pyrag_rl.data.rows import TrainRow

READING_TASKS = ("answer", "synthesis", "rag")


async def reading_examples(
    questions: Sequence[GoldQuestion],
    passages: Mapping[str, Passage],
    tasks: Sequence[str],
    mix: ReadingMix,
    dropped: Counter[str],
) -> AsyncIterator[list[PromptlessRow]]:
    """Yield the rows of each question.

    Args:
        questions: Questions with sub-questions and their answers.
        passages: Gold passages of the questions, by id.
        tasks: Tasks from `READING_TASKS`.
        mix: Shares of the kinds of rows.
        dropped: Counter of steps without a row, by reason and source; increased by this function.
    """
    retriever = Bm25Retriever(index_of(passages.values()))
    for question in questions:
        answers = {number: step.gold for number, step in enumerate(question.sub_questions, start=1)}
        rows = []
        if "answer" in tasks:
            rows += [row async for row in _steps(question, answers, passages, retriever, mix, dropped)]
        if "synthesis" in tasks:
            rows += _conclusion(question, answers)
        if "rag" in tasks:
            rows += await _whole(question, passages, retriever, mix)
        yield rows


async def _steps(
    question: GoldQuestion,
    answers: Mapping[int, str],
    passages: Mapping[str, Passage],
    retriever: Bm25Retriever,
    mix: ReadingMix,
    dropped: Counter[str],
) -> AsyncIterator[PromptlessRow]:
    for number, step in enumerate(question.sub_questions, start=1):
        gold = passages.get(question.passage_of(number))
        if gold is None:
            continue
        query = filled(asked_of(step), answers)
        spellings = question.answers if number == len(answers) else (step.gold,)
        made = await gold_reading(f"{question.source}:{question.id}:{number}", query, spellings, gold, retriever, mix)
        if made is None:
            dropped[f"the answer of a step is not in its passage ({question.source})"] += 1
            continue
        documents = documents_of(made.passages)
        row = _row(question, spellings, query, documents=documents, supporting=(gold.id,), sufficient=made.sufficient)
        yield PromptlessRow(row, ask_answer(query, made.passages), made.reply)


def _conclusion(question: GoldQuestion, answers: Mapping[int, str]) -> list[PromptlessRow]:
    """Return the row that concludes a comparison from the answers of its steps; empty for other questions."""
    *steps, last = question.sub_questions
    if last.op != "compare" or not all(step.gold for step in steps):
        return []
    asked = [(filled(asked_of(step), answers), step.gold) for step in steps]
    query = concluding_query(question.question, asked)
    reply = answer_reply(Answer(question.answers[0]), "It follows from the facts.")
    return [PromptlessRow(_row(question, question.answers, query), ask_answer(query, None), reply)]


async def _whole(
    question: GoldQuestion, passages: Mapping[str, Passage], retriever: Bm25Retriever, mix: ReadingMix
) -> list[PromptlessRow]:
    """Return the row that answers the whole question; empty unless all its gold passages are known."""
    searched = [number for number, step in enumerate(question.sub_questions, start=1) if step.op != "compare"]
    golds = {key: passages[key] for key in map(question.passage_of, searched) if key in passages}
    if not question.answers or not all(question.passage_of(number) in golds for number in searched):
        return []
    key, asked = f"{question.source}:{question.id}", question.question
    made = await whole_reading(key, asked, question.answers[0], list(golds.values()), retriever, mix)
    row = _row(
        question, question.answers, "", documents=documents_of(made.passages), supporting=tuple(golds), sufficient=True
    )
    return [PromptlessRow(row, ask_answer(asked, made.passages), made.reply)]


def _row(question: GoldQuestion, answers: Sequence[str], query: str, **more: Any) -> TrainRow:
    return TrainRow(
        index=0,
        id=question.id,
        agent="answer",
        source=question.source,
        question=question.question,
        query=query,
        answers=tuple(answers),
        messages=(),
        **more,
    )
