"""Types of answers: which words name the same type, and which goals only combine answers of given types."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.goals.goal import Goal

YES_NO = "yes/no"
_ANY = frozenset(("answer", "entity", "thing", "name", "item", "result", "value", "information", "fact"))
# Types that are interchangeable.
_KINDS: tuple[frozenset[str], ...] = tuple(
    frozenset(words.split())
    for words in (
        "person actor actress author writer director composer singer performer artist musician player athlete"
        " politician president founder father mother spouse wife husband child son daughter brother sister sibling"
        " producer screenwriter creator inventor architect painter coach manager ceo leader king queen ruler character"
        " scientist man woman",
        "place location city town village country state province county region continent nation birthplace river"
        " mountain island district area capital headquarters venue stadium building address",
        "date year day month time period century decade birthdate birthday",
        "number count amount population quantity age duration length height distance size price percentage",
        "organisation organization company club team band group label university college school agency party"
        " institution publisher studio network employer corporation firm league",
        "work film movie song album book novel series show play game poem title single episode painting",
        "yes/no boolean bool yesno yes-no verdict truth",
    )
)
_PERSON, _PLACE, _DATE, _NUMBER, _ORGANISATION, _WORK, _VERDICT = _KINDS
_THINGS = _PERSON | _ORGANISATION | _WORK  # their names say nothing about them that could be compared
_COMPARES = re.compile(
    r"\b(?:compar\w+|earli\w+|later|latest|first|last|old(?:er|est)|young(?:er|est)|(?:larg|bigg|small|great|high|low|tall"
    r"|short|long|heavi|clos|near|deep|wid)(?:er|est)|more|most|less|least|fewer|fewest|same|equal|identical|differen\w+"
    r"|common|shared?|sum|total|average|combine|between|both|either|whether|determine|decide|conclude|before|after"
    r"|subtract|add|calculate|compute|divide|multiply|ratio|percentage|minus|plus|count"
    r"|how (?:many|much|long|old))\b",
    re.IGNORECASE,
)
_SAME = re.compile(r"\b(?:same|equal|identical|differ\w*)\b", re.IGNORECASE)
_FINAL = re.compile(
    r"\W*(?:(?:finally|then),?\s+)?(?:(?:provide|give|state|return|output|report|present|formulate|produce|generate|derive)"
    r"\s+(?:the\s+)?(?:final\s+)?(?:answer|result|conclusion)\b|answer\s+the\s+(?:\w+\s+)?question\b"
    r"|(?:the\s+)?final\s+answer\b|conclude\b|summari[sz]e\b)",
    re.IGNORECASE,
)
_ASKED = (
    (re.compile(r"\W*(?:when|(?:in |on )?(?:what|which) (?:year|date|day|month))\b", re.IGNORECASE), "date"),
    (re.compile(r"\W*(?:how (?:many|much|old|tall|long|high|far)|what (?:is|was) the (?:number|population))\b",
                re.IGNORECASE), "number"),
    (re.compile(r"\W*(?:who|whom|whose)\b", re.IGNORECASE), "person"),
    (re.compile(r"\W*(?:where|(?:in )?(?:what|which) (?:city|town|country|place))\b", re.IGNORECASE), "place"),
    (re.compile(r"\W*(?:is|are|was|were|do|does|did|has|have|can)\b", re.IGNORECASE), YES_NO),
)  # fmt: skip
_MENTIONED = re.compile(
    r"\b(?:he|she|him|his|hers?|it|its|they|them|their)\b|\b(?:[Tt]he|[Tt]h(?:is|at|ese|ose)) (?P<word>[a-z]+)"
)


def same_type(first: str, second: str) -> bool:
    """Return True if a value of one type can be used where the other is requested, in either order.

    Args:
        first: Type in lower case. Only its last word counts; empty means any type.
        second: Another type.
    """
    heads = [_singular(text.split()[-1]) if text.split() else "answer" for text in (first, second)]
    if heads[0] == heads[1] or _ANY & set(heads):
        return True
    return any(set(heads) <= kind for kind in _KINDS)


def _singular(word: str) -> str:
    known = any(word in kind for kind in _KINDS)
    return word if known or not word.endswith("s") else word.removesuffix("s")


def is_check(goals: Sequence[Goal], goal: Goal) -> bool:
    """Return True if a goal only asks whether an earlier answer is right.

    Args:
        goals: The whole plan. The only goal of a plan is never a check.
        goal: Goal of the plan.
    """
    return len(goals) > 1 and bool(goal.needs) and same_type(goal.type, YES_NO) and goal.type not in _ANY


def kind_of(type_: str, text: str) -> str:
    """Return the type of a goal, from its text if the type is general; "answer" if both are.

    Args:
        type_: Type as written; may be empty.
        text: The goal's question.
    """
    if type_ and type_.split()[-1] not in _ANY:
        return type_
    return next((kind for pattern, kind in _ASKED if pattern.match(text)), "answer")


def concludes(text: str, needed: Sequence[str], *, says_where: bool) -> bool:
    """Return True for a goal that only compares or computes with known answers, so that a search cannot help.

    Args:
        text: The goal's question.
        needed: Types of the answers that the goal uses.
        says_where: Whether the goal's text has placeholders for these answers.
    """
    if len(needed) < 2 or not _COMPARES.search(text):
        return False
    alike = all(same_type(kind, needed[0]) for kind in needed) and "answer" not in needed
    return not says_where or any(map(_says_something, needed)) or (alike and _SAME.search(text) is not None)


def is_final(text: str) -> bool:
    """Return True for a goal that only asks for the answer, such as "Provide the final answer"."""
    return _FINAL.match(text) is not None


def _says_something(kind: str) -> bool:
    head = _singular(kind.split()[-1])
    return head not in _THINGS and head not in _ANY


def mentions(text: str, kind: str) -> bool:
    """Return True if a text refers to an earlier answer: "he", "the company", "that city".

    Args:
        text: A goal's question.
        kind: Type of the earlier answer; "answer" is matched by pronouns only.
    """
    for mention in _MENTIONED.finditer(text):
        word = mention["word"]
        if word is None or (kind != "answer" and word not in _ANY and same_type(word, kind)):
            return True
    return False
