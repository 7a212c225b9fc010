"""What a model's reply means, part six: what HERA's agents say of passages, answers and questions.

All are one JSON object. Answers and rewritten queries have the form of `parsing_judged`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from pyrag.agents.fields import decision_of, line_of, object_with, positions_of
from pyrag.errors import BadOutputError
from pyrag.topology import DIFFICULTIES, QUESTION_TYPES, Agent, Characterisation

Word = TypeVar("Word", bound=str)


def parse_selection(text: str, documents: int) -> tuple[tuple[int, ...], str]:
    """Positions of the passages to keep, counted from 0, and why. Raises `BadOutputError`."""
    value = object_with(text, "documents")
    if not isinstance(value["documents"], list):
        raise BadOutputError(f'"documents" must be a list of numbers, not {repr(value["documents"])[:80]}')
    return positions_of(value["documents"], documents), line_of(value, "analysis")


def parse_verdict(text: str, reason: str) -> tuple[bool, str, str]:
    """The decision, the analysis, and with a NO what the key `reason` says. Raises `BadOutputError`."""
    value = object_with(text, "decision")
    good = decision_of(value["decision"])
    why = "" if good else line_of(value, reason)
    if not good and not why:
        raise BadOutputError(f'the decision is NO, but "{reason}" does not say why')
    return good, line_of(value, "analysis"), why


def parse_profile(text: str) -> Characterisation:
    """Raises `BadOutputError` where the type is none of the paper's."""
    return profile_of(object_with(text, "type"))


def profile_of(value: dict[str, Any]) -> Characterisation:
    asks = line_of(value, "asks").casefold()
    return Characterisation(_word(value, "type", QUESTION_TYPES), _word(value, "difficulty", DIFFICULTIES), asks)


def agent_named(said: str, known: Iterable[Agent]) -> Agent | None:
    """The agent that "Answer Generator" or "answer-generator agent" means, if it is among those known."""
    plain = re.sub(r"[\s-]+", "_", said.strip().casefold()).removesuffix("_agent")
    return next((agent for agent in known if agent == plain), None)


def _word(value: dict[str, Any], key: str, known: tuple[Word, ...]) -> Word:
    said = line_of(value, key).casefold()
    found = next((word for word in known if word == said), None)
    if found is None:
        raise BadOutputError(f'"{key}" must be one of {", ".join(known)}, not {said[:40]!r}')
    return found
