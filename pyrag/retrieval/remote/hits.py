"""Hits of search tools, under any usual field names, as the mappings that `pyrag.retrieval.checked` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TEXT = ("text", "content", "contents", "page_content", "passage", "snippet", "body", "chunk", "description", "summary")
_TITLE = ("title", "name", "heading")
_SOURCE = ("source", "url", "uri", "link", "href", "path", "file")
_ID = ("id", "_id", "doc_id", "document_id", "chunk_id", "uri", "url", "link")
_SCORE = ("score", "relevance_score", "relevance", "similarity")
_LISTS = ("passages", "results", "result", "documents", "hits", "matches", "items", "chunks", "data")
_INSIDE = ("document", "metadata", "meta")  # nested mappings that hold some fields of a hit
MAX_DEPTH = 3  # of nested mappings


def hits_in(value: Any, depth: int = MAX_DEPTH) -> list[Any]:
    """Return the hits of a reply: the reply itself if it is a list, or a list inside it.

    Args:
        value: JSON value.
        depth: Maximum depth of nested mappings to search.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    if not isinstance(value, Mapping) or depth < 1:
        return []
    named = [value[key] for key in _LISTS if key in value]
    for inner in named or [item for item in value.values() if isinstance(item, list | Mapping)]:
        if hits := hits_in(inner, depth - 1):
            return hits
    return [value] if _text_of(value) else []


def fields_of_hit(hit: Any) -> Any:
    """Return a hit with the field names `id`, `title`, `text`, `source` and `score`. A plain text becomes `text`.

    Any other value is returned unchanged, so that `checked` drops it.
    """
    if isinstance(hit, str):
        return {"text": hit}
    if not isinstance(hit, Mapping):
        return hit
    inside = [hit[key] for key in _INSIDE if isinstance(hit.get(key), Mapping)]
    fields = {key: value for mapping in (*reversed(inside), hit) for key, value in mapping.items() if value is not None}
    text = _text_of(fields)
    if text is None:
        return hit
    names = {"id": _first(fields, _ID), "title": _first(fields, _TITLE), "source": _first(fields, _SOURCE)}
    places = {key: fields.get(key) for key in ("start", "end")}
    return names | places | {"text": text, "score": _number(_first(fields, _SCORE))}


def ranked(hits: Iterable[Any]) -> list[Any]:
    """Add decreasing scores to hits without scores, for engines that do not report any."""
    return [
        hit | {"score": 1.0 / place} if isinstance(hit, dict) and hit.get("score") is None else hit
        for place, hit in enumerate(hits, 1)
    ]


def _text_of(hit: Mapping[str, Any]) -> str | None:
    return next((value for key in _TEXT if isinstance(value := hit.get(key), str) and value.strip()), None)


def _first(hit: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value for key in names if isinstance(value := hit.get(key), str | int | float) and value != ""), None)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
