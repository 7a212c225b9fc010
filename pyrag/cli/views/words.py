"""Words that many messages share."""

from __future__ import annotations

from collections.abc import Mapping


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 passage`, `2 passages`, `3 searches`, `4 replies`.

    Args:
        number: How many.
        noun: In the singular.
    """
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def field_words(metadata: Mapping[str, object]) -> str:
    """Return the fields of a passage in words, such as `team: ops; year: 2020`."""
    values = ((name, ", ".join(map(str, one)) if isinstance(one, list) else one) for name, one in metadata.items())
    return "; ".join(f"{name}: {value}" for name, value in values)
