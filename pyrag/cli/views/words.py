"""Metadata of passages in words."""

from __future__ import annotations

from collections.abc import Mapping


def field_words(metadata: Mapping[str, object]) -> str:
    """Return the metadata of a passage as text, such as `team: ops; year: 2020`."""
    values = (
        (name, ", ".join(map(str, value)) if isinstance(value, list) else value) for name, value in metadata.items()
    )
    return "; ".join(f"{name}: {value}" for name, value in values)
