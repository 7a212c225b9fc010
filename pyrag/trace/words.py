"""Words shared by the messages of all surfaces."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 passage`, `2 passages`, `3 searches`, `4 replies`.

    Args:
        number: Number of things.
        noun: Noun in the singular.
    """
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
