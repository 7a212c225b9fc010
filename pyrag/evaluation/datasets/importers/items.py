"""Questions and passages that importers make of released records."""

from __future__ import annotations

import hashlib
import html
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Passage of the set's corpus. Its id is derived from its text, so equal texts have the same id."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """Question in the common layout (`fields` of its line), and the passages that came with it."""

    fields: dict[str, Any]
    passages: tuple[Paragraph, ...] = ()


def passage(prefix: str, title: str, text: str) -> Paragraph:
    """Return a passage with tidy texts.

    Args:
        prefix: Prefix of the id, such as "hp".
        title: Title; may contain HTML entities.
        text: Text; may contain line breaks.
    """
    title, text = tidy_title(title), " ".join(text.split())
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:10]
    return Paragraph(f"{prefix}-{digest}", title, text)


def tidy_title(title: str) -> str:
    """Return a title without HTML entities, and with single spaces."""
    return " ".join(html.unescape(title).split())
