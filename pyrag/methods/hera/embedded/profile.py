"""The kind of a question, by an engine's rules (HERA, appendix D.1)."""

from __future__ import annotations

import re

from pyrag.agents.goals.rules import QuestionReading, QuestionRules
from pyrag.methods.hera.topology import Characterisation, Difficulty, QuestionType

_CAUSAL = re.compile(r"\b(?:why|causes?|caused|reasons? for|because of what|led to|result of)\b", re.IGNORECASE)
_TEMPORAL = re.compile(r"\b(?:when|while|during|at the time|before|after)\b", re.IGNORECASE)
_TWOFOLD = re.compile(
    r"\b(?:begin|start|open)\w* and (?:end|finish|close)|\b(?:who|what|when|where) and (?:who|what|when|where)\b"
)


def profile_of(question: str, rules: QuestionRules) -> Characterisation:
    """Return the profile of a question.

    Args:
        question: The question.
        rules: Rules that read the question.
    """
    reading = next(rules.readings(question))
    searches = sum(bool(goal.search) for goal in reading.goals)
    difficulty: Difficulty = "easy" if searches <= 1 else "medium" if searches <= 3 else "hard"
    return Characterisation(_type_of(question, reading, searches), difficulty, rules.asked_for(question))


def _type_of(question: str, reading: QuestionReading, searches: int) -> QuestionType:
    match reading.shape:
        case "comparison":
            return "comparison"
        case "difference" | "period":
            return "temporal"
        case "shared" | "gathering":
            return "intersection"
        case _ if _CAUSAL.search(question):
            return "causal"
        case _ if _TWOFOLD.search(question.lower()):
            return "ambiguous"
        case "chain" if searches > 1:
            return "temporal" if _TEMPORAL.search(question[1:].partition(" ")[2]) else "bridge"
        case _:
            return "single"
