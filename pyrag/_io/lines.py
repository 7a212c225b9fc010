"""Lines of a text as Python and JSON Lines count them."""

from __future__ import annotations

import io


def lines_of(text: str, *, keepends: bool = False) -> list[str]:
    """Split a text at `\\n`, `\\r\\n` and `\\r` only.

    `str.splitlines` also cuts at form feeds, U+0085, U+2028 and others, which may stand inside of a string literal, a
    JSON string or an answer.

    Args:
        text: Any text.
        keepends: Keep the line ends.
    """
    lines = list(io.StringIO(text, newline=""))
    return lines if keepends else [line.rstrip("\r\n") for line in lines]
