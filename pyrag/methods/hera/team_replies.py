"""What a model's reply means, part six: what HERA's agents say of passages, answers and questions.

All are one JSON object. Answers and rewritten queries have the form of `parsing_judged`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrag.agents.parsing.fields import decision_of, loose_line_of, object_with, positions_of
from pyrag.agents.parsing.json_values import parse_json
from pyrag.errors import BadOutputError
from pyrag.methods.hera.agent_names import difficulty, question_type, text_of
from pyrag.methods.hera.topology import DIFFICULTIES, QUESTION_TYPES, Characterisation, QuestionType


def parse_selection(text: str, documents: int) -> tuple[tuple[int, ...], str]:
    """Positions of the passages to keep, counted from 0, and why. Raises `BadOutputError`."""
    value = _selection(text)
    said = value["documents"]
    positions = positions_of(said, documents)
    if not positions and not isinstance(said, list):
        raise BadOutputError(f'"documents" must be a list of numbers, not {repr(said)[:80]}')
    return positions, loose_line_of(value, "analysis")


def _selection(text: str) -> dict[str, Any]:
    """The object with the documents, or the list of them alone."""
    try:
        return object_with(text, "documents")
    except BadOutputError:
        for value in parse_json(text, "["):
            if isinstance(value, list) and positions_of(value, len(text)):
                return {"documents": value}
        raise


def parse_verdict(text: str, reason: str) -> tuple[bool, str, str]:
    """The decision, the analysis, and with a NO what the key `reason` says. Raises `BadOutputError`."""
    value = object_with(text, "decision")
    good = decision_of(value["decision"])
    why = "" if good else loose_line_of(value, reason) or loose_line_of(value, "analysis")
    if not good and not why:
        raise BadOutputError(f'the decision is NO, but "{reason}" does not say why')
    return good, loose_line_of(value, "analysis"), why


def parse_profile(text: str) -> Characterisation:
    """Raises `BadOutputError` where the type means none of the paper's."""
    value = object_with(text, "type")
    said = text_of(value, "type")
    if question_type(said) is None:
        raise BadOutputError(f'"type" must be one of {", ".join(QUESTION_TYPES)}, not {said[:40]!r}')
    return profile_of(value)[0]


def profile_of(
    value: Mapping[str, Any], otherwise: QuestionType = "single"
) -> tuple[Characterisation, tuple[str, ...]]:
    """The kind of question that an object names, and warnings for what could not be read.

    Args:
        value: an object with the keys "type", "difficulty" and "asks".
        otherwise: the type where it says none.
    """
    type_, hard = text_of(value, "type"), text_of(value, "difficulty")
    kind, level = question_type(type_), difficulty(hard)
    warnings = []
    if type_ and kind is None:
        warnings.append(
            f"the question type {type_[:40]!r} is none of {', '.join(QUESTION_TYPES)}: {otherwise} is taken"
        )
    if hard and level is None:
        warnings.append(f"the difficulty {hard[:40]!r} is none of {', '.join(DIFFICULTIES)}: medium is taken")
    asks = text_of(value, "asks").casefold()
    return Characterisation(kind or otherwise, level or "medium", asks), tuple(warnings)
