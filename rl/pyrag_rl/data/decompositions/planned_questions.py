"""Questions without decompositions, with the sub-questions that the embedded planner reads in them.

MuSiQue's training questions are in the order of the original file, which groups them by their number of hops. A reading
is kept if it has as many steps as the question has hops. R1-Searcher's questions come from HotpotQA and
2WikiMultiHopQA, and are kept if they are read as a chain of any length. A question read as a single search is not used,
because a single search is the planner's fallback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyrag.embedded.planner.meaning import Chain, Entity, RelationStep
from pyrag.embedded.planner.planner import parse
from pyrag.embedded.planner.wording import fill, name
from pyrag.evaluation.datasets.layout import Question, find_file, read_questions
from pyrag_rl.data.decompositions.source import GoldQuestion, GoldStep, chosen

MUSIQUE, R1_SEARCHER = "musique-train-qa", "r1-searcher-stage2"
SOURCES = (MUSIQUE, R1_SEARCHER)
# Ends of the blocks in the original file, read off the questions: line number and hops. Near an end, a few lines may be
# assigned to the wrong block.
_BLOCKS = ((13_860, 2), (18_090, 3), (19_240, 4), (19_690, 2), (19_880, 3), (19_938, 4))
_TORN = re.compile(r"\b(?:a|an|the|do|does|did)(?: #\d)?\?$")  # "What mountains does #2?"


def planned_questions(folder: Path, limit: int, seed: int) -> list[GoldQuestion]:
    """Return questions with the planner's sub-questions, alternating between two, three and four steps.

    Args:
        folder: Folder of decompositions, with `questions.jsonl[.gz]`.
        limit: Maximum number of questions of each source; 0 for none.
        seed: Seed for the order.

    Raises:
        DataError: The file of questions is damaged.
    """
    path = find_file(folder, "questions")
    if path is None or not limit:
        return []
    questions = list(_planned(read_questions(path)))
    return chosen(questions, (), {question.source: limit for question in questions}, seed)


def _planned(questions: Iterable[Question]) -> Iterator[GoldQuestion]:
    for question in questions:
        hops, any_length = hops_of(question.id), question.id.startswith("r1s_2_")
        steps = steps_of(question.question) if hops or any_length else ()
        if steps and (any_length or len(steps) == hops) and not any(_TORN.search(step.question) for step in steps):
            last = GoldStep(question=steps[-1].question, answer=question.answers[0], depends_on=steps[-1].depends_on)
            yield GoldQuestion(
                id=question.id, source=R1_SEARCHER if any_length else MUSIQUE, question=question.question,
                answers=tuple(question.answers), sub_questions=(*steps[:-1], last), type=f"{len(steps)}hop",
                hops=len(steps),
            )  # fmt: skip


def hops_of(identifier: str) -> int:
    """Return the number of hops of a question by its id ("musique_train_00017"); 0 for questions of another source."""
    source, _, number = identifier.rpartition("_")
    if source != "musique_train" or not number.isdigit():
        return 0
    return next((hops for end, hops in _BLOCKS if int(number) < end), 0)


def steps_of(question: str) -> tuple[GoldStep, ...]:
    """Return the steps that the embedded planner reads in a question; empty if it is not a chain.

    Args:
        question: The user's question.
    """
    meaning = parse(question)
    if not isinstance(meaning, Chain) or isinstance(meaning.node, Entity):
        return ()
    steps: dict[RelationStep, GoldStep] = {}
    _number(meaning.node, steps)
    return tuple(steps.values())


def _number(step: RelationStep, numbered: dict[RelationStep, GoldStep]) -> str:
    """Add a step after those that it depends on. Return the reference to its answer."""
    if step not in numbered:
        values = [name(arg) if isinstance(arg, Entity) else _number(arg, numbered) for arg in step.args]
        earlier = tuple(list(numbered).index(arg) + 1 for arg in step.args if isinstance(arg, RelationStep))
        answer = f"value {len(numbered) + 1}"  # placeholder for an unknown answer
        numbered[step] = GoldStep(question=fill(step.question, values), answer=answer, depends_on=earlier)
    return f"#{list(numbered).index(step) + 1}"
