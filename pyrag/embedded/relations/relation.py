"""Rows of the table of relations, and functions for writing them.

Patterns in `asked` and `cues` match within one line of text. Patterns in `forms` have the placeholders {x}, {when},
{where}, {was} and {did}.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerType = Literal["person", "place", "country", "date", "organisation", "work", "number", "thing"]
Kind = AnswerType | Literal["nationality", "state", "county", "continent", "period"]
Domain = Literal["person", "work", "place", "any"]
Cue = tuple[str, str, float]

_WIDER: dict[Kind, AnswerType] = {
    "nationality": "country",
    "state": "place",
    "county": "place",
    "continent": "place",
    "period": "date",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """Relation that a question may ask about, for a thing X.

    Args:
        name: Name of the relation, as in Wikidata if it exists there.
        nouns: Nouns in "the NOUN of X" and "X's NOUN".
        kind: Kind of answer.
        domain: Kind of thing that X is, if it matters.
        variable: Name of the answer in programs. Empty to derive it from `name`.
        role: Occupation of people in this relation, which distinguishes them from namesakes.
        verbs: Past forms in "who VERB X" and "X was VERB by".
        question: Question to ask for the relation. Empty if only the reader knows the relation.
        query: Text to search for. Empty if only the reader knows the relation.
        forms: Further patterns of whole questions, around `{x}`.
        asked: Pattern that finds the relation in any question whose names are masked.
        cues: Cues for an answer: a pattern over a sentence, a selector of the answer and a reliability from 0 to 1,
            estimated on training data. The selectors "after", "place" and "award" select the name after the match (a
            place is not a month), "before" the name before it, and "second" the second name of a list after it. Patterns
            that look for a capital letter are case-sensitive, others are not.
    """

    name: str
    nouns: tuple[str, ...]
    kind: Kind
    domain: Domain
    variable: str
    role: str
    verbs: tuple[str, ...]
    question: str
    query: str
    forms: tuple[str, ...]
    asked: str
    cues: tuple[Cue, ...]

    @property
    def answer_type(self) -> AnswerType:
        """Kind of answer in the planner's terms, such as "place" for "state"."""
        return _WIDER.get(self.kind) or self.kind  # type: ignore[return-value]  # other kinds are answer types

    def ask(self, x: str) -> str:
        """Return the question for this relation of a thing."""
        return self.question.replace("{x}", x)


_PLACEHOLDERS = {
    "{when}": r"(?:when|(?:in |on )?(?:what|which) (?:year|date|day))",
    "{where}": r"(?:where|(?:in |at )?(?:what|which) (?:place|location|city|town|village|country|state|county|province|region)(?: or \w+)?)",
    "{was}": r"(?:is|was|are|were)",
    "{did}": r"(?:did|does|do)",
}


def row(
    name: str,
    nouns: str = "",
    *,
    kind: Kind = "person",
    of: Domain = "any",
    variable: str = "",
    role: str = "",
    verbs: str = "",
    ask: str = "",
    find: str = "",
    forms: tuple[str, ...] = (),
    asked: str = "",
    cues: tuple[Cue, ...] = (),
) -> Relation:
    """Return a row of the table.

    Args:
        name: Name of the relation, as in Wikidata if it exists there.
        nouns: Nouns in "the NOUN of X" and "X's NOUN", separated by bars.
        kind: Kind of answer.
        of: Kind of thing that X is, if it matters.
        variable: Name of the answer in programs.
        role: Occupation of people in this relation.
        verbs: Past forms in "who VERB X" and "X was VERB by", separated by bars.
        ask: Question to ask for the relation, with `{x}`.
        find: Text to search for, with `{x}`.
        forms: Further patterns of whole questions, with `{x}` and the other placeholders.
        asked: Pattern that finds the relation in any question whose names are masked.
        cues: Cues for an answer; see `Relation`.
    """
    return Relation(
        name,
        _split(nouns),
        kind,
        of,
        variable,
        role,
        _split(verbs),
        ask,
        find,
        tuple(map(_expanded, forms)),
        asked,
        cues,
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


def _expanded(form: str) -> str:
    """Return a form with all placeholders except {x} replaced by patterns."""
    for placeholder, pattern in _PLACEHOLDERS.items():
        form = form.replace(placeholder, pattern)
    return form


BY = r"(?:(?!\bstarring\b)[^.;()]){0,60}?\bby\s+"


def made(participles: str, nouns: str) -> tuple[Cue, ...]:
    """Return the usual cues for a person's part in a work: "edited by X", "its editor X", "X edited".

    Args:
        participles: Participles, separated by bars.
        nouns: Nouns in the singular, separated by bars.
    """
    return (
        (rf"\b(?:{participles})\b{BY}", "after", 1.0),
        (rf"\b(?:{nouns})s?(?: was| is|,)?\s+(?=[^a-z\s])", "after", 0.8),
        (rf"\s+(?:{participles})\b", "before", 0.6),
    )


TAUGHT = (  # cues for teachers and for advisers, whom pages seldom distinguish
    (r"\b(?:advis[eo]r|supervisor|supervision of|supervised by|guidance of|advised by|mentored by|mentor|tutored by)(?: was|,)?\s+", "after", 1.0),
    (r"\b(?:doctora\w+|ph\.?d\.?|dissertation|thesis|degree)\b[^.;()]{0,60}?\bunder\s+", "after", 1.0),
    (r"\b(?:studied|trained|student|pupil|lessons|taught|learnt|learned|apprentice\w*)\b[^.;()]{0,30}?\b(?:under|with|of|from|by)\s+", "after", 0.95),
    (r"\b(?:teacher|tutor)s?(?: was| were|,)?\s+(?=[^a-z\s])", "after", 0.85),
)  # fmt: skip
