"""Replies that OPERA's agents learn from gold labels: plans from sub-questions, judgements from gold passages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.goals.goal import Goal
from pyrag.errors import BadOutputError
from pyrag.evaluation.datasets.layout import Question
from pyrag.methods.opera.goals import read_goals
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage
from pyrag_rl.data.replies import goals_reply, judgement_reply

_REFERENCE = re.compile(r"#(\d+)")


def gold_plan(question: Question) -> str:
    """Return the plan of a question's own sub-questions; empty if it has none or OPERA's parser refuses the plan.

    Args:
        question: A question whose data set lists its hops; `#1` stands for the first answer.
    """
    goals = []
    for step, hop in enumerate(question.decomposition, start=1):
        text = _REFERENCE.sub(lambda match: f"[answer from step {match[1]}]", hop.question)
        needs = tuple(sorted({int(number) for number in _REFERENCE.findall(hop.question)}))
        goals.append(Goal(step, text, needs=needs, search=text))
    # "Berlin >> country" is MuSiQue's shorthand, not a question.
    if not goals or any(not goal.text or ">>" in goal.text for goal in goals):
        return ""
    reply = goals_reply(goals, f"{len(goals)} facts are needed, one after the other.")
    try:
        reading = read_goals(reply, question.question)
    except BadOutputError:
        return ""
    same = [(goal.step, goal.needs) for goal in reading.goals] == [(goal.step, goal.needs) for goal in goals]
    return reply if same and not reading.warnings else ""


def gold_judgement(query: str, answer: str, gold: Sequence[str], passages: Sequence[Passage]) -> str:
    """Return YES with the answer if a gold passage is among the passages, and otherwise NO.

    Args:
        query: The sub-question.
        answer: Gold answer of the sub-question.
        gold: Ids that count as the sub-question's gold passage.
        passages: Retrieved passages, in the order of the prompt.
    """
    cited = [number for number, passage in enumerate(passages, start=1) if passage.id in gold]
    ids = tuple(passage.id for passage in passages)
    if not cited:
        fault = f"No document answers: {query}"
        unknown = Answer(UNKNOWN, known=False)
        return judgement_reply(Attempt("first", query, passages=ids, answer=unknown, rationale=fault, missing=query))
    known = Answer(answer, citations=tuple(passages[number - 1].id for number in cited))
    rationale = " ".join(f"Document [{number}] answers it." for number in cited)
    return judgement_reply(Attempt("first", query, passages=ids, answer=known, rationale=rationale))
