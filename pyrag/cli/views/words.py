"""Words that many messages share."""

from __future__ import annotations

from collections.abc import Mapping

from pyrag.trace.words import counted

__all__ = ["counted", "field_words"]


def field_words(metadata: Mapping[str, object]) -> str:
    """Return the fields of a passage in words, such as `team: ops; year: 2020`."""
    values = ((name, ", ".join(map(str, one)) if isinstance(one, list) else one) for name, one in metadata.items())
    return "; ".join(f"{name}: {value}" for name, value in values)
