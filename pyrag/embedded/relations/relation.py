"""A row of the table of relations, and what its rows are written with.

A pattern in `asked` or `cues` is written for one line of text; `forms` hold {x}, {when}, {where}, {was} and {did}.
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
    """A fact that may be asked of a thing X, named as in Wikidata where that has it.

    `nouns` are what stands in "the NOUN of X" and "X's NOUN"; `verbs` are past forms as in "who VERB X" and "X was VERB
    by"; `forms` are further wordings of a whole question, as patterns around `{x}`. `question` and `query` are how
    pyrag itself asks and searches; a relation that only the reader knows has neither. `asked` finds the relation in any
    question, names blanked. `domain` is what X is, as far as it matters; `variable` what a program calls the value;
    `role` tells persons found by this relation from namesakes.

    A cue is a pattern over a sentence, which name to take ("after" the match, "before" it, the "second" of a list, a
    "place") and the pattern's reliability in [0, 1], judged on training data. A cue that looks for a capital is matched
    with case, the others without.
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
        """The kind of answer, as far as the planner tells kinds apart."""
        return _WIDER.get(self.kind) or self.kind  # type: ignore[return-value]  # what is not widened is an answer type

    def ask(self, x: str) -> str:
        return self.question.replace("{x}", x)


_SPELLED = {
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
    """Return a row of the table. Args: those of `Relation`; bars separate nouns and verbs."""
    words = tuple(nouns.split("|")) if nouns else (), tuple(verbs.split("|")) if verbs else ()
    spelled = tuple(map(_spelled, forms))
    return Relation(name, words[0], kind, of, variable, role, words[1], ask, find, spelled, asked, cues)


def _spelled(form: str) -> str:
    for slot, pattern in _SPELLED.items():
        form = form.replace(slot, pattern)
    return form


BY = r"(?:(?!\bstarring\b)[^.;()]){0,60}?\bby\s+"


def made(participles: str, nouns: str) -> tuple[Cue, ...]:
    """Return the usual cues of somebody's part in a work: "edited by X", "its editor X", "X edited".

    Args:
        participles: Separated by bars.
        nouns: Singular, separated by bars.
    """
    return (
        (rf"\b(?:{participles})\b{BY}", "after", 1.0),
        (rf"\b(?:{nouns})s?(?: was| is|,)?\s+(?=[^a-z\s])", "after", 0.8),
        (rf"\s+(?:{participles})\b", "before", 0.6),
    )


TAUGHT = (  # for teachers and advisers: pages seldom tell the two apart
    (r"\b(?:advis[eo]r|supervisor|supervision of|supervised by|guidance of|advised by|mentored by|mentor|tutored by)(?: was|,)?\s+", "after", 1.0),
    (r"\b(?:doctora\w+|ph\.?d\.?|dissertation|thesis|degree)\b[^.;()]{0,60}?\bunder\s+", "after", 1.0),
    (r"\b(?:studied|trained|student|pupil|lessons|taught|learnt|learned|apprentice\w*)\b[^.;()]{0,30}?\b(?:under|with|of|from|by)\s+", "after", 0.95),
    (r"\b(?:teacher|tutor)s?(?: was| were|,)?\s+(?=[^a-z\s])", "after", 0.85),
)  # fmt: skip
