"""A module of helpers as a caller of the sandbox writes it: two functions, and an error of its own."""

from __future__ import annotations

from typing import Any


class LostError(ValueError):
    """A value that was not found is used."""


def is_present(value: Any) -> bool:
    """Return True for a value that was found."""
    return bool(getattr(value, "known", value is not None))


def shouted(text: str) -> str:
    """Return a text in capital letters."""
    if not is_present(text):
        raise LostError("this value is lost")
    return str(text).upper()


HELPERS = {"is_present": is_present, "shouted": shouted}
ERRORS = {"LostError": LostError}
