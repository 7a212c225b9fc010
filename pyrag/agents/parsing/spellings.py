"""Other spellings of a reply that cannot be parsed as JSON: JSON in a string, curly quotes, unclosed thinking."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
_TAG = re.compile(r"<(?P<end>/?)(?:think(?:ing)?|reason(?:ing)?|thoughts?|scratchpad|analysis)>", re.IGNORECASE)
_CURLY = str.maketrans("“”„‟«»＂", '"""""""')


def first_read(text: str, read: Callable[[str], T | None]) -> T | None:
    """Return the value of the first spelling of a reply that can be parsed, or None.

    Args:
        text: The reply, which is the first spelling in most cases.
        read: Parses a spelling; returns None if it cannot.
    """
    return next((value for spelling in _spellings(text) if (value := read(spelling)) is not None), None)


def _spellings(text: str) -> Iterator[str]:
    bare = _TAG.sub("\n", text)
    ends = [bool(tag["end"]) for tag in _TAG.finditer(text)]
    unended = ends.count(False) > ends.count(True)  # the beginning of the reply is unknown, so all of the text is read
    yield from dict.fromkeys(
        (*([bare] if unended else []), text, bare, text.replace('\\"', '"'), text.translate(_CURLY))
    )


def line(text: str) -> str:
    """Return a text on one line, without unprintable characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
