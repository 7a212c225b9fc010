"""Metadata field that names a passage's source, and filters on this field."""

from __future__ import annotations

from typing import Literal

from pyrag.retrieval.filters.tree import Conjunction, Disjunction, Filter, all_of, any_of

ORIGIN = "origin"
"""Name of the field."""

LEFT_OUT = "is left out of this search"
"""Words of every warning on a source that failed or was late."""


def rest_for(where: Filter | None, name: str) -> Filter | Literal[False] | None:
    """Return the remaining filter for one source, whose `origin` is known.

    Args:
        where: The filter; None for no filter.
        name: Name of the source.

    Returns:
        A filter on other fields; None if all passages of the source pass; False if none can.
    """
    if where is None:
        return None
    rest = _reduced(where, name)
    return (None if rest else False) if isinstance(rest, bool) else rest


def _reduced(where: Filter, name: str) -> Filter | bool:
    if isinstance(where, Conjunction | Disjunction):
        deciding = isinstance(where, Disjunction)  # a part that settles the whole
        rest: list[Filter] = []
        for part in (_reduced(inner, name) for inner in where.parts):
            if part is deciding:
                return deciding
            if not isinstance(part, bool):
                rest.append(part)
        if not rest:
            return not deciding
        joined = any_of(*rest) if deciding else all_of(*rest)
        assert joined is not None
        return joined
    return where.matches({ORIGIN: name}) if where.field == ORIGIN else where
