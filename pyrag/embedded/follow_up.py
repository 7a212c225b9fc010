"""Follow-ups by rules: pronouns and "and X?" become names that the questions and answers before them gave.

"Who directed The Seventh Seal?" – "Ingmar Bergman" – "Where was he born?" asks for Ingmar Bergman; "When was it
released?" for The Seventh Seal; "And Wild Strawberries?" who directed that. A follow-up that names nothing to go by is
asked as it is, with a note. Left out: "the other one", "both", and whatever else needs to be understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyrag._io.lines import lines_of
from pyrag.agents.protocol import MAX_TURN, MAX_TURNS, Standalone
from pyrag.embedded.lexicon import words
from pyrag.llm.protocol import Message
from pyrag.trace.model import UNKNOWN

_WORD = r"[^\W\d_a-z][\w'’.&-]*"  # with a capital
_NAME = re.compile(rf"{_WORD}(?:\s+(?:(?:of|the|and|de|la|le|du|von|van|der|in|on|for)\s+)*(?:{_WORD}|\d+))*")
_OPENERS = words("""
    who whom whose what which when where why how in on at of for from by is are was were do does did has have had can
    could will would should and the a an to with during after before
""")
_ABOUT = re.compile(r"\A(?:and|what about|how about|and what about|and how about)\s+(.+)\Z", re.IGNORECASE)
_ENDS = "?!. \t\r\n"  # of a question
_PERSON = re.compile(
    r"\A(?:\W*who\b|\W*whom\b|.*\bwhich (?:actor|actress|author|director|person|singer|writer)\b)", re.I
)
_PLACE = re.compile(
    r"\A(?:\W*where\b|.*\b(?:what|which) (?:city|country|county|island|place|region|state|town|village)\b)", re.I
)
_PRONOUN = re.compile(
    r"\b(?P<owner>his|its|their)\b"
    r"|\b(?P<her>her)\b(?P<rest>\s+(?!in\b|at\b|on\b|to\b|by\b|from\b|with\b|as\b|and\b|when\b|before\b|after\b)[a-z])?"
    r"|\b(?P<person>he|she|him|they|them)\b"
    r"|\b(?P<thing>it)\b"
    r"|\b(?P<place>there)\b(?!\s+(?:is|are|was|were|any|a)\b)"
    r"|\b(?P<that>that|this)\s+(?P<noun>[a-z]+)\b",
    re.IGNORECASE,
)
_AT_START = re.compile(r"\A(?:is|are|was|were)\s+there\b", re.IGNORECASE)
_MAX_NAME = 200  # characters of what takes the place of a pronoun, which may stand a thousand times
_NOTE = "the follow-up was asked as it is: nothing before it says what {word!r} stands for"


@dataclass(frozen=True, slots=True)
class _Known:
    """The names that the conversation has given so far."""

    question: str = ""  # the last one, as one of its own
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
        named = _NAME.fullmatch(self.answer) is not None
        of_thing = named and not _PERSON.match(self.question) and not _PLACE.match(self.question)
        return self.answer if of_thing else self.subject

    def after(self, question: str) -> _Known:
        """Return what is known once a question was asked."""
        return _Known(question, next(reversed(list(_names(question))), self.subject)[:_MAX_NAME])


class EmbeddedFollowUp:
    """The Standalone Agent by rules; deterministic."""

    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Return a question of its own. Args: those of `FollowUpAgent.standalone`."""
        known = _Known()
        for turn in earlier[-MAX_TURNS:]:
            content = turn.content[:MAX_TURN]
            if turn.role == "user":
                known = known.after(_resolved(content, known)[0][:MAX_TURN])
            elif content.strip() and content.strip().casefold() != UNKNOWN:
                known = replace(known, answer=_first_line(content)[:_MAX_NAME])
        found, missing = _resolved(question, known)
        return Standalone(found, note=_NOTE.format(word=missing) if missing else "")


def _resolved(question: str, known: _Known) -> tuple[str, str]:
    """Return a question with names in the place of pronouns, and the first word that nothing could be found for."""
    about = _ABOUT.match(question.strip().rstrip(_ENDS))
    if about and not _is_question(about[1]):
        if known.subject and known.question:
            return known.question.replace(known.subject, about[1][:_MAX_NAME]), ""
        return question, about[0]
    missing: list[str] = []

    def named(found: re.Match[str]) -> str:
        value = _referent(found, known)
        if not value:
            missing.append(found[0])
        return value or found[0]

    if _AT_START.match(question):
        return question, ""
    return _PRONOUN.sub(named, question), next(iter(missing), "")


def _referent(found: re.Match[str], known: _Known) -> str:
    """Return the name for a pronoun with what belongs to it; empty if there is none."""
    if found["that"]:
        return known.answer if known.answer else known.subject
    if found["place"]:
        return f"in {known.place}" if known.place else ""
    if found["thing"]:
        return known.thing
    if found["person"]:
        return known.person
    owner = known.thing if (found["owner"] or "").casefold() == "its" else known.person
    if not owner:
        return ""
    if found["her"] and not found["rest"]:
        return owner
    return f"{owner}'s{found['rest'] or ''}"


def _is_question(text: str) -> bool:
    """True for "and when did he die", which has a verb of its own."""
    first = text.split()[0].casefold()
    return first in _OPENERS - {"the", "a", "an"}


def _names(question: str) -> Iterator[str]:
    """Yield the names in a question; a capital at its start alone is none."""
    for found in _NAME.finditer(question):
        parts = found[0].split()
        while parts and parts[0].casefold() in _OPENERS and (found.start() == 0 or parts[0].casefold() != "the"):
            parts = parts[1:]
        if parts:
            yield " ".join(parts)


def _first_line(answer: str) -> str:
    """Return an answer without the marks of its citations."""
    line = lines_of(answer.strip())[0]
    return re.sub(r"(?:\s*\[\d+\])+\s*\Z", "", line).rstrip(". ")
