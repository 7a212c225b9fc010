"""Rows from the questions of data sets, with the passages that a retriever finds for them.

    answer      the question on k passages, with k drawn from `depths` (NQ's layout in PyRAG's release)
    rag         the same, on all gold passages if replies are learnt and the corpus has these passages
    decompose   the question
    plan        the question with the sub-queries of the engine's Decompose agent
    joint       the question, without sub-queries
    goals       the question, for OPERA's Plan agent; the replies to learn are the set's own sub-questions
    analysis    a hop's own question on k passages, and whether a gold passage is among them
    rewrite     a hop's own question whose search missed its gold passage

Hops are those written by the data set's authors (MuSiQue, Bamboogle), or a single-hop question. Rows about the plans of
OPERA's own agents come from runs (`traces`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyrag.agents.protocol import Decomposer
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.scoring import asked
from pyrag.retrieval.protocol import Retriever
from pyrag.trace.model import Passage
from pyrag_rl.data.answer_readings import GoldReading, ReadingMix, gold_reading, reading_of_matches, whole_reading
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
from pyrag_rl.data.opera_gold import gold_judgement, gold_plan
from pyrag_rl.data.rows import TrainRow

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class RowSources:
    """Sources of rows.

    `topk` is the number of passages that a step retrieves at run time. With a `mix`, replies to learn are made over the
    gold passages in `corpus`.
    """

    retriever: Retriever
    decomposer: Decomposer
    seed: int = 0
    depths: tuple[int, ...] = (3, 5, 8, 10)
    topk: int = 5
    mix: ReadingMix | None = None
    corpus: Mapping[str, Passage] = field(default_factory=dict)

    def depth(self, question: Question) -> int:
        """Return the number of passages k for a question, which is the same on every machine."""
        return random.Random(f"{self.seed}:{question.id}").choice(self.depths)  # noqa: S311  a draw, no secret


@dataclass(frozen=True, slots=True)
class SetHop:
    """A search of a question, as its data set describes it."""

    query: str
    answers: tuple[str, ...]
    supporting: tuple[str, ...]


def hops_of(question: Question) -> Iterator[SetHop]:
    """Yield the hops whose gold passages are known, with earlier answers filled in."""
    if not question.decomposition:
        if len(question.supporting) == 1:
            yield SetHop(question.question, question.answers, _accepted(question, question.supporting[0]))
        return
    answers = [hop.first_answer for hop in question.decomposition]
    for place, (hop, query) in enumerate(zip(question.decomposition, sub_questions(question), strict=True)):
        # "Berlin >> country" is MuSiQue's shorthand, which no agent would ever be asked.
        if hop.supporting and query and answers[place] and ">>" not in query and not _REFERENCE.search(query):
            last = place == len(answers) - 1
            yield SetHop(query, question.answers if last else (answers[place],), _accepted(question, hop.supporting))


def sub_questions(question: Question) -> list[str]:
    """Return the sub-questions in a question's data set, with known earlier answers filled in."""
    answers = [hop.first_answer for hop in question.decomposition]
    return [_REFERENCE.sub(lambda match: _nth(answers, int(match[1])), hop.question) for hop in question.decomposition]


def _nth(answers: list[str], number: int) -> str:
    return answers[number - 1] if 0 < number <= len(answers) and answers[number - 1] else f"#{number}"


def _accepted(question: Question, gold: str) -> tuple[str, ...]:
    return (gold, *question.supporting_alt.get(gold, ()))


def _row(question: Question, source: str, agent: str, **more: Any) -> TrainRow:
    hops = question.hops or len(question.decomposition) or len(question.supporting)
    fields = {"answers": question.answers, "supporting": question.supporting, "hops": hops, **more}
    return TrainRow(
        index=0, id=question.id, agent=agent, source=source, question=asked(question), messages=(), **fields
    )


async def _readings(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Answer agent: the question on retrieved passages, or on gold passages with a reply to learn."""
    query = asked(question)
    if row_sources.mix is not None:
        return await _gold_readings(question, source, row_sources, row_sources.mix)
    passages = await row_sources.retriever.retrieve(query, row_sources.depth(question))
    if not passages:
        return []
    has_single_gold = len(question.supporting) == 1  # with several, a passage can contain a part of the answer
    sufficient = (
        any(passage.id in _accepted(question, *question.supporting) for passage in passages)
        if has_single_gold
        else None
    )
    row = _row(question, source, "answer", documents=documents_of(passages), sufficient=sufficient)
    return [PromptlessRow(row, ask_answer(query, passages))]


async def _gold_readings(
    question: Question, source: str, row_sources: RowSources, mix: ReadingMix
) -> list[PromptlessRow]:
    """Build the row of a question with a single gold passage; no row if the passage does not contain the answer."""
    gold = [row_sources.corpus[key] for key in question.supporting if key in row_sources.corpus]
    if len(gold) != 1 or len(question.supporting) != 1:
        return []
    query = asked(question)
    made = await gold_reading(f"{source}:{question.id}", query, question.answers, gold[0], row_sources.retriever, mix)
    if made is None:
        return []
    return [_learnt(question, source, made)]


def _learnt(question: Question, source: str, made: GoldReading) -> PromptlessRow:
    row = _row(question, source, "answer", documents=documents_of(made.passages), sufficient=made.sufficient)
    return PromptlessRow(row, ask_answer(asked(question), made.passages), made.reply)


async def _whole_readings(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Answer agent for whole questions, as in vanilla RAG.

    Replies are learnt over the gold passages, or over retrieved passages if the gold ones are unknown (NQ).
    """
    golds = [row_sources.corpus[key] for key in question.supporting if key in row_sources.corpus]
    mix = row_sources.mix
    if mix is None:
        return await _readings(question, source, row_sources)
    if not golds:
        passages = await row_sources.retriever.retrieve(asked(question), row_sources.depth(question))
        return [_learnt(question, source, reading_of_matches(question.answers, passages))] if passages else []
    key, answer = f"{source}:{question.id}", question.answers[0]
    made = await whole_reading(key, asked(question), answer, golds, row_sources.retriever, mix)
    return [_learnt(question, source, made)]


async def _decompositions(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Decompose agent."""
    return [PromptlessRow(_row(question, source, "decompose"), ask_decomposition(asked(question)))]


async def _programs(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Plan agent, with sub-queries of the engine's Decompose agent; no row if that agent failed."""
    decomposition = await row_sources.decomposer.decompose(asked(question))
    if decomposition.fallback:
        return []
    sub_queries = decomposition.sub_queries
    row = _row(question, source, "plan", sub_queries=sub_queries)
    return [PromptlessRow(row, ask_program(asked(question), sub_queries))]


async def _joint_programs(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Plan agent in joint mode, with sub-queries and program in one reply."""
    return [PromptlessRow(_row(question, source, "plan"), ask_joint_program(asked(question)))]


async def _plans(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of OPERA's Plan agent."""
    reply = gold_plan(question) if row_sources.mix is not None else ""
    return [PromptlessRow(_row(question, source, "plan"), ask_goals(asked(question)), reply)]


async def _judgements(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of OPERA's Analysis-Answer agent: each hop on its retrieved passages, labelled by its gold passage."""
    examples = []
    for hop in hops_of(question):
        passages = await row_sources.retriever.retrieve(hop.query, row_sources.depth(question))
        row = _row(
            question,
            source,
            "answer",
            query=hop.query,
            answers=hop.answers,
            supporting=hop.supporting,
            documents=documents_of(passages),
            sufficient=any(passage.id in hop.supporting for passage in passages),
        )
        learnt = passages and row_sources.mix is not None
        reply = gold_judgement(hop.query, hop.answers[0], hop.supporting, passages) if learnt else ""
        if passages:
            examples.append(PromptlessRow(row, ask_analysis(hop.query, passages, asked(question)), reply))
    return examples


async def _rewrites(question: Question, source: str, row_sources: RowSources) -> list[PromptlessRow]:
    """Build rows of the Rewrite agent: hops whose search missed the gold passage."""
    examples = []
    for hop in hops_of(question):
        passages = await row_sources.retriever.retrieve(hop.query, row_sources.topk)
        if any(passage.id in hop.supporting for passage in passages):
            continue
        tried = (hop.query, hop.query)  # as in the recovery ladder: the search, then the question it was made for
        row = _row(
            question,
            source,
            "rewrite",
            query=hop.query,
            documents=documents_of(passages),
            supporting=hop.supporting[:1],
            tried=tried,
        )
        examples.append(PromptlessRow(row, ask_rewrite(hop.query, tried, passages, "")))
    return examples


# Rows of a question, by task: (question, name of its set, sources) -> rows.
EXAMPLES: dict[str, Callable[[Question, str, RowSources], Awaitable[list[PromptlessRow]]]] = {
    "answer": _readings,
    "rag": _whole_readings,
    "decompose": _decompositions,
    "plan": _programs,
    "joint": _joint_programs,
    "goals": _plans,
    "analysis": _judgements,
    "rewrite": _rewrites,
}

WITH_REPLIES = ("answer", "rag", "goals", "analysis")
"""Tasks for which sets have replies to learn."""
