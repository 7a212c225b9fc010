"""Hits of search tools, whatever their fields are called, as the mappings that `pyrag.retrieval.checked` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TEXT = ("text", "content", "contents", "page_content", "passage", "snippet", "body", "chunk", "description", "summary")
_TITLE = ("title", "name", "heading")
_SOURCE = ("source", "url", "uri", "link", "href", "path", "file")
_ID = ("id", "_id", "doc_id", "document_id", "chunk_id", "uri", "url", "link")
_SCORE = ("score", "relevance_score", "relevance", "similarity")
_LISTS = ("passages", "results", "result", "documents", "hits", "matches", "items", "chunks", "data")
_INSIDE = ("document", "metadata", "meta")  # mappings inside of a hit that hold some of its fields
MAX_DEPTH = 3  # of lists inside of mappings


def hits_in(value: Any, depth: int = MAX_DEPTH) -> list[Any]:
    """Return the hits of a reply: a list, or the list that a mapping holds under a usual or its only name.

    Args:
        value: data of JSON.
        depth: mappings inside of mappings that are looked into.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    if not isinstance(value, Mapping) or depth < 1:
        return []
    named = [value[key] for key in _LISTS if key in value]
    for inner in named or [one for one in value.values() if isinstance(one, list | Mapping)]:
        if found := hits_in(inner, depth - 1):
            return found
    return [value] if _text_of(value) else []


def fields_of_hit(hit: Any) -> Any:
    """Return a hit with the usual names of fields: `id`, `title`, `text`, `source`, `score`; a text is its only field.

    Anything else is returned as it is, for `checked` to leave out.
    """
    if isinstance(hit, str):
        return {"text": hit}
    if not isinstance(hit, Mapping):
        return hit
    inside = [hit[key] for key in _INSIDE if isinstance(hit.get(key), Mapping)]
    given = {key: value for one in (*reversed(inside), hit) for key, value in one.items() if value is not None}
    text = _text_of(given)
    if text is None:
        return hit
    found = {"id": _first(given, _ID), "title": _first(given, _TITLE), "source": _first(given, _SOURCE)}
    places = {key: given.get(key) for key in ("start", "end")}
    return found | places | {"text": text, "score": _number(_first(given, _SCORE))}


def ranked(hits: Iterable[Any]) -> list[Any]:
    """Return hits with scores that fall along the list, for engines that rank without telling scores."""
    return [
        one | {"score": 1.0 / place} if isinstance(one, dict) and one.get("score") is None else one
        for place, one in enumerate(hits, 1)
    ]


def _text_of(hit: Mapping[str, Any]) -> str | None:
    return next((value for key in _TEXT if isinstance(value := hit.get(key), str) and value.strip()), None)


def _first(hit: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value for key in names if isinstance(value := hit.get(key), str | int | float) and value != ""), None)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
