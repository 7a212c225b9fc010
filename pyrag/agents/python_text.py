"""Text as Python source: string literals and parts of f-strings, escaped so that no content can break out."""

from __future__ import annotations

import re
from collections.abc import Callable


def literal(text: str) -> str:
    """Return a string literal in double quotes, with all unprintable characters escaped."""
    return f'"{_escape(text)}"'


def braced(text: str) -> str:
    """Escape a text for use inside an f-string in double quotes."""
    return _escape(text).replace("{", "{{").replace("}", "}}")


def interpolated(text: str, slot: re.Pattern[str], name: Callable[[re.Match[str]], str]) -> str:
    """Escape a text for use inside an f-string in double quotes, with its slots replaced by variables.

    Args:
        text: Any text.
        slot: Pattern of a slot.
        name: Returns the variable of a slot.
    """
    parts, at = [], 0
    for match in slot.finditer(text):
        parts += [braced(text[at : match.start()]), "{", name(match), "}"]
        at = match.end()
    return "".join([*parts, braced(text[at:])])


def _escape(text: str) -> str:
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
