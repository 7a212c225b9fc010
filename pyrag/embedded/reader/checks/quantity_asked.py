"""Checks of what a number counts: whether its unit, label or noun is the one that the question asks for."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pyrag.embedded.lexicon import words
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.words import STOPWORDS, fold
from pyrag_helpers.measures.amounts import read_amounts
from pyrag_helpers.measures.units import Unit, read_unit

_UNIT_ASKED = re.compile(
    r"\bhow many (?P<counted>[a-zµ-]+(?: [a-z]+)?) (?:(?:long|wide|high|deep|tall|thick|heavy|far|away|old|fast|large|big)\b|(?:do|does|did|is|are|was|were|can|will|has|have)\b)"
    r"|\b(?:in|to) (?:the unit )?(?P<named>[a-zµ-]+(?: (?:miles?|tons?|tonnes?|metres?|meters?|ounces?|hours?))?)(?=[?,.]|$| (?:is|are|was|were|does|do|did)\b)",
    re.I,
)
_COUNTED = re.compile(
    r"\b(?:how many|what number of|the number of) (?:of (?:the|our|these|those|all) )?(?P<nouns>[a-z][a-z' -]*)", re.I
)
_AUXILIARY = words("do does did can could will would should may might must has had")
_ENDS = words(
    "is are was were be been have in of on at to from by for with who which that whose there per than as or and about"
    " since until after before during under over inside within"
)
_PEOPLE = words(
    "people persons person population inhabitants residents citizens souls employees staff workers participants"
    " attendees members visitors guests pupils students passengers spectators attendance capacity enrolment enrollment"
    " men women seats crew audience soldiers troops individuals delegates volunteers"
)
_FIGURES = re.compile(r"\d[\d,. ]*\d|\d")
_LABEL = re.compile(r"(?:^|[;,|•*-]|\s{2})\s*(?P<label>[^\W\d_][\w ()/%°µ-]{0,40}?)\s*[:=]\s*$")
_RULE = re.compile(r":?-{2,}:?")


@lru_cache(maxsize=1024)
def unit_of(word: str) -> Unit | None:
    """Return the unit for a name or symbol; None for other words."""
    unit, end = read_unit(word, 0)
    return unit if unit.kind and end == len(word) else None


def other_unit(question: str, text: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if a number is not in the unit that the question names, else "".

    Args:
        question: The question.
        text: Text of the passage.
        evidence: Parts of the text that contain the answer.
        answer: The answer.
    """
    asked = next((unit for match in _UNIT_ASKED.finditer(question) if (unit := _named_unit(match))), None)
    if asked is None or not _FIGURES.search(answer):
        return ""
    shown = [unit for label in labels_of(text, evidence, answer) for word in _words(label) if (unit := unit_of(word))]
    if any((unit.kind, unit.factor) == (asked.kind, asked.factor) for unit in shown):
        return ""
    return "the number is not in the unit that the question names"


def _named_unit(match: re.Match[str]) -> Unit | None:
    text = (match["counted"] or match["named"]).lower()
    return unit_of(text) or unit_of(text.split()[0])


def uncounted(question: str, text: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if a number does not count what the question asks about, else "".

    Args:
        question: The question.
        text: Text of the passage.
        evidence: Parts of the text that contain the answer.
        answer: The answer.
    """
    match = _COUNTED.search(question)
    if match is None:
        return ""
    nouns, asks_of_thing = _nouns(match["nouns"])
    if not nouns:
        return ""
    if _is_measured(nouns, answer):
        return f"{nouns[-1]} are counted, and this is measured"
    others = [word for word in _words(question) if word not in STOPWORDS] if asks_of_thing else []
    for label in labels_of(text, evidence, answer):
        there = _words(label)
        if any(_counts(noun, word) for noun in nouns[-2:] for word in there):
            return ""
        if any(are_alike(word, other) for word in there for other in others if other not in ("many",)):
            return ""
    return f"the passage does not say that the number is one of {nouns[-1]}"


def _nouns(text: str) -> tuple[list[str], bool]:
    """Return the nouns that a question counts, and whether one thing has them: "how many cows does the farm have"."""
    parts = text.lower().split()
    end = next((at for at, word in enumerate(parts) if word in _ENDS or word in _AUXILIARY), min(len(parts), 2))
    follows = parts[end] if end < len(parts) else ""
    is_of_thing = follows in _AUXILIARY or (follows in ("are", "is", "were", "was") and "there" in parts[end : end + 2])
    return [word.strip("'") for word in parts[:end]], is_of_thing


def _is_measured(nouns: Sequence[str], answer: str) -> bool:
    """Return whether a number has a unit although a question counts things: "500 g" for "how many eggs"."""
    units = [amount.unit.name for amount, _ in read_amounts(answer) if amount.unit.kind]
    is_measure = any(unit not in _SCALES for unit in units)
    return is_measure and not any(unit_of(noun) or unit_of(noun.removesuffix("s")) for noun in nouns)


_SCALES = words("m k b t")  # letters that also stand for millions, thousands and so on


def _counts(noun: str, word: str) -> bool:
    return are_alike(noun, word) or (noun in _PEOPLE and word in _PEOPLE)


def labels_of(text: str, evidence: Sequence[str], answer: str) -> Iterator[str]:
    """Yield texts that describe a number: the words after it, its label, its column's heading, and "number of … is".

    Args:
        text: Text of the passage.
        evidence: Parts of the text that contain the answer.
        answer: The answer.
    """
    yield _FIGURES.sub(" ", answer)
    for piece in evidence:
        at = piece.find(answer)
        if at < 0:
            continue
        before, after = piece[:at], piece[at + len(answer) :]
        yield " ".join(re.split(r"[;|.!?]| - ", after, maxsplit=1)[0].split()[:4])
        if label := _LABEL.search(before):
            yield label["label"]
        if subject := _IS.search(before):
            yield subject["name"]
        yield _heading(text, piece, at)


_IS = re.compile(
    r"(?P<name>(?:number|population|total|count|quantity|amount|capacity|size|[a-z]+s)(?: of (?:the )?[a-z -]+?)?)"
    r"(?: (?:in|of|at|for|on) [^.;|]{1,60})? (?:is|was|are|were|of|to|at|reached|rose to|fell to|grew to|stood at|being)"
    r" (?:about |over |only |around |exactly |some |approximately |nearly |just )?$",
    re.I,
)


def _heading(text: str, row: str, at: int) -> str:
    """Return the heading of the Markdown table column that holds a position in a row, or ""."""
    if row.count("|") < 2:
        return ""
    lines = text.splitlines()
    number = next((place for place, line in enumerate(lines) if row.strip() and row.strip() in line), 0)
    heading = ""
    for line in lines[: number + 1][::-1]:
        if line.count("|") < 1:
            break
        heading = line
    cells = [cell.strip() for cell in heading.strip().strip("|").split("|")]
    column = row[:at].lstrip().removeprefix("|").count("|")
    return cells[column] if column < len(cells) and not _RULE.fullmatch(cells[column]) else ""


def _words(text: str) -> list[str]:
    """Return the words and unit signs in a text."""
    return [word if len(word) < 3 else fold(word) for word in re.findall(r"[^\W\d_]+(?:/[a-z]+)?|[%°$€£]", text)]
