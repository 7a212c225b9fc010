"""A sub-goal of a plan, and the placeholders in its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

EVIDENCE = "evidence"  # type of a goal that only collects passages
MAX_TYPE = 60  # characters of a type inside a placeholder
PLACEHOLDER = re.compile(
    rf"\[(?P<type>[^\W\d][^\[\]\n]{{0,{MAX_TYPE}}}?) from step (?P<step>[1-9]\d?)\]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Goal:
    """Sub-goal of a plan. Its texts hold placeholders such as `[city from step 2]` for the answers it needs.

    Attributes:
        step: Number of the goal in its plan, from 1.
        text: The goal's question.
        type: Kind of the answer, such as "city", "person" or "yes/no".
        needs: Steps whose answers the goal uses.
        search: Search text; empty if the answers in `needs` suffice.
        compute: Python expression over those answers, if the answer can be computed.
    """

    step: int
    text: str
    type: str = "answer"
    needs: tuple[int, ...] = ()
    search: str = ""
    compute: str = ""


def placeholder(goal: Goal) -> str:
    """Return the placeholder of a goal's answer."""
    return f"[{goal.type} from step {goal.step}]"
