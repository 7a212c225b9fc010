"""Lines of a text as Python and JSON Lines define them."""

from __future__ import annotations

import io


def lines_of(text: str, *, keepends: bool = False) -> list[str]:
    """Split a text at `\\n`, `\\r\\n` and `\\r` only.

    `str.splitlines` also splits at form feeds, U+0085, U+2028 and others, which may occur within a string literal, a
    JSON string or an answer.

    Args:
        text: Any text.
        keepends: True to keep the line ends.
    """
    lines = list(io.StringIO(text, newline=""))
    return lines if keepends else [line.rstrip("\r\n") for line in lines]
