"""Known and unknown values in a program, and the error for using an unknown value."""

from __future__ import annotations

from typing import TypeVar

from pyrag_helpers.unknown import is_unknown

T = TypeVar("T")


class UnknownAnswerError(ValueError):
    """Error for using an answer that was not found. The program is correct, but evidence is missing."""


def is_known(answer: object) -> bool:
    """Return False for an answer that was not found, for a text with this meaning, and for None."""
    known = getattr(answer, "known", None)
    if isinstance(known, bool):
        return known
    text = str(answer).strip()
    return text.casefold() not in ("", "none") and not (any(map(str.isalnum, text)) and is_unknown(text))


def require_known(value: T) -> T:
    """Return a value unchanged. Raise `UnknownAnswerError` if it is an answer that was not found."""
    if value is None or (isinstance(value, str) and str.__str__(value).strip() and not is_known(value)):
        raise UnknownAnswerError(
            "the answer to be read is unknown: test it with is_known(…) first, or find it another way"
        )
    return value
