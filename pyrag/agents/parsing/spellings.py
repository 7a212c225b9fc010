"""Other spellings of a reply that holds no JSON as it stands: JSON in a string, curly quotes, unended thinking."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
_TAG = re.compile(r"<(?P<end>/?)(?:think(?:ing)?|reason(?:ing)?|thoughts?|scratchpad|analysis)>", re.IGNORECASE)
_CURLY = str.maketrans("“”„‟«»＂", '"""""""')


def first_read(text: str, read: Callable[[str], T | None]) -> T | None:
    """Return the value of the first spelling of a reply that can be read, in most cases the reply itself; else None.

    Args:
        text: The reply.
        read: Reads a spelling; returns None if it cannot.
    """
    return next((found for one in _spellings(text) if (found := read(one)) is not None), None)


def _spellings(text: str) -> Iterator[str]:
    bare = _TAG.sub("\n", text)
    ends = [bool(found["end"]) for found in _TAG.finditer(text)]
    unended = ends.count(False) > ends.count(True)  # nothing says where the reply begins, so all of it is read
    yield from dict.fromkeys(
        (*([bare] if unended else []), text, bare, text.replace('\\"', '"'), text.translate(_CURLY))
    )


def line(text: str) -> str:
    """A text on one line, without characters that cannot be printed."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
