"""Programs of gold decompositions: a search and a reading for each sub-question, then the remaining computation.

    q1 = "Who directed Dracula?"
    a1 = answer(q1, retrieve(q1))
    q2 = f"When was {a1} born?"
    a2 = answer(q2, retrieve(q2))
    final_answer = a2

A chain ends with the answer of its last step. Dates and kinds are compared in Python. If the answers cannot be parsed
as such, or if no rule covers their comparison, the Answer agent concludes from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.python_text import braced, interpolated, literal
from pyrag_rl.data.decompositions.source import GoldStep
from pyrag_rl.data.decompositions.wording import REFERENCE, asked_of

_DATES = frozenset({"date of birth", "date of death", "publication date", "inception", "date"})
_NUMBERS = frozenset({"number", "population", "area", "elevation above sea level", "length", "height"})
_KINDS = frozenset({"country", "country of citizenship", "country of origin", "place of birth", "place of death"})
_MORE = re.compile(
    r"\b(?:more|most|larger|largest|bigger|greater|higher|highest|longer|longest|taller)\b", re.IGNORECASE
)
_LESS = re.compile(r"\b(?:less|least|fewer|fewest|smaller|smallest|lower|lowest|shorter|shortest)\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:later|last|latest|younger|youngest|newer|recent|recently|after)\b", re.IGNORECASE)
_EARLIER = re.compile(r"\b(?:first|earlier|earliest|older|oldest|before)\b", re.IGNORECASE)
_SAME = re.compile(r"\b(?:same|both|share)\b", re.IGNORECASE)


# Steps that a program would compute, and no search finds.
_COMPUTING = re.compile(
    r"(?:letters?|digits?|vowels?|consonants?|syllables|initials|(?:first|last) name|(?:ASCII|binary) code|palindrome"
    r"|prime factors|combinations|concatenation|UTC) (?:\w+ ){0,5}#|(?:date|year)(?: .*)? (?:before|after) #"
    r"|day of the week was #|What is the (?:result|sum|length|cube|year|day) of\b.* #|#\d+ and UTC"
)


class UncoveredFormError(Exception):
    """Error for a decomposition that no rule covers; the message is the reason."""


@dataclass(frozen=True, slots=True)
class GoldProgram:
    """Program with its questions, in which `#1` stands for the first answer.

    `concludes` is set if the Answer agent always concludes, and not only if a computation fails.
    """

    source: str
    questions: tuple[str, ...]
    concludes: bool = False


def program_of(question: str, steps: Sequence[GoldStep]) -> GoldProgram:
    """Return the program of a decomposition.

    Args:
        question: The user's question.
        steps: Sub-questions in order.

    Raises:
        UncoveredFormError: No rule covers the decomposition.
    """
    compared = steps[-1] if steps and steps[-1].op == "compare" else None
    searched = steps[:-1] if compared else steps
    if not searched:
        raise UncoveredFormError("no sub-question to search for")
    questions = tuple(map(asked_of, searched))
    _check(questions, compared)
    lines = [line for number, text in enumerate(questions, start=1) for line in _step(number, text)]
    if compared is None:
        return GoldProgram("\n".join([*lines, f"final_answer = a{len(questions)}"]), questions)
    conclusion = _conclusion(question, len(questions))
    computed = _comparison(question, searched, compared)
    if computed is None:
        return GoldProgram("\n".join([*lines, f"final_answer = {conclusion}"]), questions, concludes=True)
    lines += [*computed.reason, "try:", f"    final_answer = {computed.expression}"]
    lines += ["except ValueError:", f"    final_answer = {conclusion}"]
    return GoldProgram("\n".join(lines), questions)


def _check(questions: Sequence[str], compared: GoldStep | None) -> None:
    """Raise `UncoveredFormError` if a step uses a later answer, or is not used itself."""
    used = set(compared.depends_on) if compared else {len(questions)}
    for number, question in enumerate(questions, start=1):
        references = {int(reference) for reference in REFERENCE.findall(question)}
        if _COMPUTING.search(question):
            raise UncoveredFormError("a step computes with letters, digits or dates")
        if any(reference >= number or reference < 1 for reference in references):
            raise UncoveredFormError("a step refers to a later one")
        used |= references
    if used != set(range(1, len(questions) + 1)):
        raise UncoveredFormError("a step is not used")


def _step(number: int, question: str) -> tuple[str, str]:
    text = literal(question)
    if REFERENCE.search(question):
        text = f'f"{interpolated(question, REFERENCE, lambda match: f"a{match[1]}")}"'
    return f"q{number} = {text}", f"a{number} = answer(q{number}, retrieve(q{number}))"


def _conclusion(question: str, count: int) -> str:
    """Return the call in which the Answer agent concludes from all questions and answers."""
    facts = " ".join(f"{{q{number}}} {{a{number}}}." for number in range(1, count + 1))
    return f'answer(f"Given: {facts} Answer the question: {braced(question)}")'


def concluding_query(question: str, asked: Sequence[tuple[str, str]]) -> str:
    """Return the query of a concluding call after its questions and answers are known.

    Args:
        question: The user's question.
        asked: Questions of the program, with their answers.
    """
    facts = " ".join(f"{query} {answer}." for query, answer in asked)
    return f"Given: {facts} Answer the question: {question}"


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Expression that compares two answers, and a comment that explains its sign.

    The comment is needed because small models otherwise often choose the wrong sign.
    """

    expression: str
    reason: tuple[str, ...] = ()


def _comparison(question: str, steps: Sequence[GoldStep], compared: GoldStep) -> _Comparison | None:
    """Return the way to compare two answers; None if no rule applies."""
    if len(compared.depends_on) != 2:
        return None
    first, second = compared.depends_on
    relations = {step.triple[1] for step in (steps[first - 1], steps[second - 1]) if len(step.triple) == 3}
    if len(relations) != 1:
        return None
    (relation,) = relations
    names = [_name(question, _root(steps, number)) for number in (first, second)]
    if relation in _KINDS and _SAME.search(question):
        return _Comparison(f'"yes" if same_entity(a{first}, a{second}) else "no"')
    if relation == "boolean":
        return _Comparison(f'"yes" if same_entity(a{first}, "yes") and same_entity(a{second}, "yes") else "no"')
    if relation not in _DATES | _NUMBERS or not all(names) or names[0] == names[1]:
        return None
    words = question
    for name in sorted(names, key=len, reverse=True):
        words = words.replace(name, " ")
    helper, up, down = ("parse_date", _LATER, _EARLIER) if relation in _DATES else ("parse_number", _MORE, _LESS)
    more, less = up.search(words), down.search(words)
    word = more or less
    if word is None or (more and less):
        return None
    sign, meaning = (">", ("later date", "larger number")) if more else ("<", ("earlier date", "smaller number"))
    expression = f"{literal(names[0])} if {helper}(a{first}) {sign} {helper}(a{second}) else {literal(names[1])}"
    return _Comparison(expression, (f"# {word[0]}: the {meaning[relation not in _DATES]}",))


def _root(steps: Sequence[GoldStep], number: int) -> GoldStep:
    """Return the first step of the chain that ends with a step."""
    step = steps[number - 1]
    while step.depends_on and step.depends_on[0] < number:
        number = step.depends_on[0]
        step = steps[number - 1]
    return step


def _name(question: str, step: GoldStep) -> str:
    """Return the name that a step asks about, as the question spells it; empty if the question does not contain it."""
    if not step.triple:
        return ""
    match = re.search(rf"(?<!\w){re.escape(step.triple[0])}(?!\w)", question, re.IGNORECASE)
    if match:
        return match[0]
    # Sub-questions made from templates take the name from the question, which may leave out a part of the page's title.
    template = re.fullmatch(
        r"(?:Who (?:directed|produced)|When (?:was|did)|In which country is|(?:Where|What country) (?:was|is)) (.+?)"
        r"(?: (?:born|die|released|founded|from|established|created|come out|published))?\?",
        step.question,
    )
    return template[1] if template and template[1] in question else ""
