"""Word lists of the embedded engine, by subject, which hold facts about the English language."""

from __future__ import annotations

import re
from collections.abc import Iterable


def words(text: str) -> frozenset[str]:
    """Return the set of words in a text."""
    return frozenset(text.split())


def names_of(text: str) -> frozenset[str]:
    """Return the set of names in a text that separates them by "; "."""
    return frozenset(" ".join(text.split()).split("; "))


def any_of(texts: Iterable[str]) -> str:
    """Return a regular expression for any of some texts, which tries longer texts first."""
    return f"(?:{'|'.join(map(re.escape, sorted(texts, key=lambda text: (-len(text), text))))})"
