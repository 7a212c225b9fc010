"""The kind of a question, by the embedded planner's reading of it (HERA, appendix D.1)."""

from __future__ import annotations

import re

from pyrag.embedded.planner.meaning import Chain, Choice, Difference, Gather, Meaning, Same, Shared, Verdict
from pyrag.embedded.planner.planner import read_question
from pyrag.embedded.question_analysis import analyse
from pyrag.methods.hera.topology import Characterisation, Difficulty, QuestionType
from pyrag.methods.opera.embedded import goals_of
from pyrag.methods.opera.goal_types import YES_NO

_CAUSAL = re.compile(r"\b(?:why|causes?|caused|reasons? for|because of what|led to|result of)\b", re.IGNORECASE)
_TEMPORAL = re.compile(r"\b(?:when|while|during|at the time|before|after)\b", re.IGNORECASE)
_TWOFOLD = re.compile(
    r"\b(?:begin|start|open)\w* and (?:end|finish|close)|\b(?:who|what|when|where) and (?:who|what|when|where)\b"
)
_KIND_OF_WORD = {"who": "person", "whom": "person", "when": "date", "where": "place", "how many": "number"}


def profile_of(question: str) -> Characterisation:
    meaning = read_question(question)
    searches = sum(bool(goal.search) for goal in goals_of(question, meaning))
    difficulty: Difficulty = "easy" if searches <= 1 else "medium" if searches <= 3 else "hard"
    return Characterisation(_type_of(question, meaning, searches), difficulty, asked_for(question))


def asked_for(question: str) -> str:
    """Return the kind of the answer, in a word: what "which" or "what" stands before, else what the question word
    means; empty where the question does not say."""
    analysis = analyse(question)
    if analysis.kind == "yesno":
        return YES_NO
    if analysis.wh not in ("what", "which"):
        return _KIND_OF_WORD.get(analysis.wh, "")
    named = analysis.head and re.search(
        rf"\b{analysis.wh} (?:(?:is|was|are|were) the )?(?:[\w-]+ )?{analysis.head}\b", question, re.I
    )
    return analysis.head if named else ""


def _type_of(question: str, meaning: Meaning, searches: int) -> QuestionType:
    match meaning:
        case Choice() | Verdict() | Same():
            return "comparison"
        case Difference() | Shared(by="period"):
            return "temporal"
        case Shared() | Gather():
            return "intersection"
        case _ if _CAUSAL.search(question):
            return "causal"
        case _ if _TWOFOLD.search(question.lower()):
            return "ambiguous"
        case Chain() if searches > 1:
            return "temporal" if _TEMPORAL.search(question[1:].partition(" ")[2]) else "bridge"
        case _:
            return "single"
