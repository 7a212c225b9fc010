"""Break's decompositions (QDMR) as sub-questions: their steps are noun phrases, which rules turn into questions.

    city where Stade 24 Novembre is located    What is the city where Stade 24 Novembre is located?
    the river that #1 is situated on           What is the river that #1 is situated on?

The rules cover chains, comparisons of two dates or numbers, yes or no about two things, and what two things share.
Break has no answers for steps, so placeholders are used: with these, a program only shows that it runs and computes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pyrag_rl.data.decompositions.programs import UncoveredFormError
from pyrag_rl.data.decompositions.source import GoldQuestion, GoldStep

_SPACE_BEFORE = re.compile(r"\s+(?=['’]s\b|[,.;:!?)])")
_ASKS = re.compile(r"(?i)(?:(?:in|on|at|from|to|for|by|with|of) )?(?:who|whom|whose|what|which|when|where|why|how)\b")
_VERB_FIRST = re.compile(r"(?i)(?:is|are|was|were|does|do|did|has|have|can)\b")
_IF = re.compile(r"(?i)if (.+?) (is|are|was|were|has|have|had|can)\b (.+)")
_PERSON = re.compile(
    r"(?i)\b(?:act(?:or|ress)|artist|author|band ?member|captain|coach|composer|director|drummer|emperor|founder"
    r"|guitarist|king|lawyer|man|men|minister|musician|novelist|owner|person|player|poet|politician|president|producer|queen|rapper"
    r"|mother|father|wife|husband|spouse|son|daughter|brother|sister|boxer|secretary|drafter|creator"
    r"|scientist|singer|songwriter|star|woman|women|writer|wrestler|journalist|architect|painter|footballer)s?\b"
)
# A phrase that only names a thing, such as "English language opera Maria Golovin", asks for nothing.
_DESCRIBES = re.compile(
    r"\b(?:who|whom|whose|which|that|where|when|[a-z]+ed|by|won|wrote|sang|played|plays|made|held)\b"
)
_PLURAL = re.compile(r"(?:[a-z](?<![su])(?<!\b[i])(?<!\bwa)(?<!\bha)(?<!\bdoe)s|\b(?:men|women|people))\s*$")
_NAME_OF = re.compile(r"(?i)(?:what is )?(?:the )?names? of #\d+")
_COUNTS = re.compile(r"(?i)(?:the )?number of #\d+")
_ARTICLE = re.compile(r"(?i)(?:the|a|an|all|both|each) ")
_STAND_INS = ("Alpha", "Beta", "Gamma", "Delta", "Epsilon")
_DATES, _NUMBERS = ("1 May 1900", "1 May 1950"), ("100", "200")
_COUNTRY = re.compile(r"(?i)(?:the )?(?:nationality|country|(?:what |which )country)\b")
_COUNTED = re.compile(r"(?i)(?:number of|population|how (?:many|much|tall|high|long|large|big)|height|length|area)\b")
_LESS = re.compile(r"(?i)\b(?:lowest|smallest|fewest|least|shortest|first|earliest|oldest|older)\b")


def as_questions(question: GoldQuestion) -> GoldQuestion:
    """Return a question with real sub-questions, and placeholders for their answers.

    Args:
        question: A question of form "qdmr".

    Raises:
        UncoveredFormError: No rule turns its steps into questions.
    """
    steps = [_clean(step.question) for step in question.sub_questions]
    if not question.answers:
        raise UncoveredFormError("the steps are not questions")
    if len(steps) == 1:
        only = GoldStep(question=question.question, answer=question.answers[0])
        return replace(question, sub_questions=(only,), form="")
    if _is_chain(steps):
        return _chain(question, steps)
    if (
        len(steps) == 3
        and not any("#" in step for step in steps[:2])
        and {"#1", "#2"} <= set(re.findall(r"#\d", steps[2]))
    ):
        return _pair(question, steps)
    raise UncoveredFormError("the steps are not questions")


def _clean(text: str) -> str:
    return _SPACE_BEFORE.sub("", " ".join(text.split()))


def _is_chain(steps: Sequence[str]) -> bool:
    return "#" not in steps[0] and all(
        re.findall(r"#\d+", step) == [f"#{number}"] for number, step in enumerate(steps[1:], start=1)
    )


def _chain(question: GoldQuestion, steps: Sequence[str]) -> GoldQuestion:
    if not _DESCRIBES.search(steps[0]) and not _ASKS.match(steps[0]):
        raise UncoveredFormError("a step names a thing and asks nothing")
    if len(steps) > 1 and _NAME_OF.fullmatch(steps[-1]):  # an answer is a name already
        steps = steps[:-1]
    if any(map(_COUNTS.fullmatch, steps)):
        raise UncoveredFormError("a step counts what an earlier one found")
    if any(step.startswith("#") for step in steps):
        raise UncoveredFormError("a step filters what an earlier one found")
    answers = [*_STAND_INS[: len(steps) - 1], question.answers[0]]
    made = [
        GoldStep(question=_asked(step), answer=answer, depends_on=(number,) if number else ())
        for number, (step, answer) in enumerate(zip(steps, answers, strict=True))
    ]
    return replace(question, sub_questions=tuple(made), form="")


def _asked(phrase: str) -> str:
    """Return the question that corresponds to a phrase."""
    if _ASKS.match(phrase) or _VERB_FIRST.match(phrase):
        return f"{phrase[:1].upper()}{phrase[1:]}?"
    if parts := _IF.fullmatch(phrase):
        return f"{parts[2].capitalize()} {parts[1]} {parts[3]}?"
    if phrase.startswith("if "):
        raise UncoveredFormError("the steps are not questions")
    head = re.split(r"(?i)\b(?:of|in|on|from|by|that|which|where|who|whose|with|for)\b", phrase, maxsplit=1)[0]
    asks = "Who" if _PERSON.search(head) or re.match(r"(?i)(?:\S+ ){1,4}who\b", phrase) else "What"
    verb = "are" if _PLURAL.search(head) else "is"
    return f"{asks} {verb} {phrase}?" if _ARTICLE.match(phrase) else f"{asks} {verb} the {phrase}?"


def _pair(question: GoldQuestion, steps: Sequence[str]) -> GoldQuestion:
    """Return a question about two things, whose last step compares them or asks whether something is true of both."""
    *asked, last = steps
    names = _names(*asked)
    relation, values = "", ("Alpha", "Beta")
    gold = question.answers[0]
    if gold.casefold() in ("yes", "no"):
        yes = gold.casefold() == "yes"
        if all(_VERB_FIRST.match(phrase) or _IF.fullmatch(phrase) for phrase in asked):
            relation, values = "boolean", ("yes", "yes" if yes else "no")
        elif all(_COUNTRY.match(phrase) for phrase in asked) and re.search(r"\bsame\b", question.question):
            relation, values = "country", ("France", "France" if yes else "Italy")
    elif last.startswith("which") and all(name and name in question.question for name in names):
        relation = "date" if asked[0].lower().startswith("when") else "number" if _COUNTED.match(asked[0]) else ""
        low, high = _DATES if relation == "date" else _NUMBERS
        first = gold == names[0]
        values = (low, high) if first == bool(_LESS.search(last)) else (high, low)
        if relation and gold not in names:
            raise UncoveredFormError("the answer is not one of the names compared")
    made = [
        GoldStep(question=_asked(phrase), answer=value, triple=(name, relation, value))
        for phrase, name, value in zip(asked, names, values, strict=True)
    ]
    end = GoldStep(question=last, answer=gold, op="compare", depends_on=(1, 2))
    return replace(question, sub_questions=(*made, end), form="")


def _names(first: str, second: str) -> tuple[str, str]:
    """Return the words that differ between two phrases."""
    left, right = first.split(), second.split()
    start = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    end = next((at for at, (a, b) in enumerate(zip(reversed(left), reversed(right), strict=False)) if a != b), 0)
    name, others = " ".join(left[start : len(left) - end]), " ".join(right[start : len(right) - end])
    return name.removeprefix("the "), others.removeprefix("the ")
