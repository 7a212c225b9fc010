"""Follow-up questions by rules: pronouns and "and X?" are replaced by names from earlier questions and answers.

After "Who directed The Seventh Seal?" – "Ingmar Bergman", the question "Where was he born?" is about Ingmar Bergman,
"When was it released?" about The Seventh Seal, and "And Wild Strawberries?" asks for its director. A follow-up question
that cannot be resolved is asked unchanged, with a note. This includes "the other one", "both", and anything
else that needs understanding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyrag._io.lines import lines_of
from pyrag.agents.protocol import MAX_TURN, MAX_TURNS, Standalone
from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.people import PERSON_NOUNS, PERSON_ROLES
from pyrag.embedded.lexicon.things import PLACE_KINDS
from pyrag.embedded.lexicon.word_classes import ARTICLES, BE_FORM, QUESTION_OPENERS
from pyrag.embedded.words import NAME_RUN
from pyrag.llm.protocol import Message
from pyrag.trace.model import UNKNOWN

_ABOUT = re.compile(r"\A(?:and|what about|how about|and what about|and how about)\s+(.+)\Z", re.IGNORECASE)
_ENDS = "?!. \t\r\n"  # of a question
_PERSON = re.compile(rf"\A(?:\W*who\b|\W*whom\b|.*\bwhich {any_of(PERSON_ROLES | PERSON_NOUNS)}\b)", re.I)
_PLACE = re.compile(rf"\A(?:\W*where\b|.*\b(?:what|which) {any_of(PLACE_KINDS)}\b)", re.I)
_PRONOUN = re.compile(
    r"\b(?P<owner>his|its|their)\b"
    r"|\b(?P<her>her)\b(?P<rest>\s+(?!in\b|at\b|on\b|to\b|by\b|from\b|with\b|as\b|and\b|when\b|before\b|after\b)[a-z])?"
    r"|\b(?P<person>he|she|him|they|them)\b"
    r"|\b(?P<thing>it)\b"
    r"|\b(?P<place>there)\b(?!\s+(?:is|are|was|were|any|a)\b)"
    r"|\b(?P<that>that|this)\s+(?P<noun>[a-z]+)\b",
    re.IGNORECASE,
)
_AT_START = re.compile(rf"\A{BE_FORM}\s+there\b", re.IGNORECASE)
_MAX_NAME = 200  # characters of a name, since it may replace a pronoun a thousand times
_NOTE = "the follow-up was asked as it is: nothing before it says what {word!r} stands for"


@dataclass(frozen=True, slots=True)
class _Known:
    """Names mentioned in the conversation so far."""

    question: str = ""  # the last question, in its standalone form
    subject: str = ""
    answer: str = ""

    @property
    def person(self) -> str:
        return self.answer if _PERSON.match(self.question) and self.answer else self.subject

    @property
    def place(self) -> str:
        return self.answer if _PLACE.match(self.question) and self.answer else ""

    @property
    def thing(self) -> str:
        is_name = NAME_RUN.fullmatch(self.answer) is not None
        of_thing = is_name and not _PERSON.match(self.question) and not _PLACE.match(self.question)
        return self.answer if of_thing else self.subject

    def after(self, question: str) -> _Known:
        """Return the known names after another question."""
        return _Known(question, next(reversed(list(_names(question))), self.subject)[:_MAX_NAME])


class EmbeddedFollowUp:
    """Deterministic, rule-based Standalone Agent."""

    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Rewrite a follow-up question so that it stands on its own.

        Args:
            earlier: Earlier turns of the conversation.
            question: The follow-up question.
        """
        known = _Known()
        for turn in earlier[-MAX_TURNS:]:
            content = turn.content[:MAX_TURN]
            if turn.role == "user":
                known = known.after(_resolved(content, known)[0][:MAX_TURN])
            elif content.strip() and content.strip().casefold() != UNKNOWN:
                known = replace(known, answer=_first_line(content)[:_MAX_NAME])
        standalone_question, missing = _resolved(question, known)
        return Standalone(standalone_question, note=_NOTE.format(word=missing) if missing else "")


def _resolved(question: str, known: _Known) -> tuple[str, str]:
    """Return a question with names instead of pronouns, and the first word that could not be replaced."""
    about = _ABOUT.match(question.strip().rstrip(_ENDS))
    if about and not _is_question(about[1]):
        if known.subject and known.question:
            return known.question.replace(known.subject, about[1][:_MAX_NAME]), ""
        return question, about[0]
    missing: list[str] = []

    def named(match: re.Match[str]) -> str:
        value = _referent(match, known)
        if not value:
            missing.append(match[0])
        return value or match[0]

    if _AT_START.match(question):
        return question, ""
    return _PRONOUN.sub(named, question), next(iter(missing), "")


def _referent(match: re.Match[str], known: _Known) -> str:
    """Return the text that replaces a pronoun; empty if no name is known for it."""
    if match["that"]:
        return known.answer if known.answer else known.subject
    if match["place"]:
        return f"in {known.place}" if known.place else ""
    if match["thing"]:
        return known.thing
    if match["person"]:
        return known.person
    owner = known.thing if (match["owner"] or "").casefold() == "its" else known.person
    if not owner:
        return ""
    if match["her"] and not match["rest"]:
        return owner
    return f"{owner}'s{match['rest'] or ''}"


def _is_question(text: str) -> bool:
    """Return whether a text is a complete question, such as "when did he die" after "and"."""
    first = text.split()[0].casefold()
    return first in QUESTION_OPENERS - ARTICLES


def _names(question: str) -> Iterator[str]:
    """Yield the names in a question, ignoring the capital letter at its start."""
    for match in NAME_RUN.finditer(question):
        parts = match[0].split()
        while (
            parts and parts[0].casefold() in QUESTION_OPENERS and (match.start() == 0 or parts[0].casefold() != "the")
        ):
            parts = parts[1:]
        if parts:
            yield " ".join(parts)


def _first_line(answer: str) -> str:
    """Return the first line of an answer without citation marks."""
    line = lines_of(answer.strip())[0]
    return re.sub(r"(?:\s*\[\d+\])+\s*\Z", "", line).rstrip(". ")
