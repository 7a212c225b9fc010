"""Hits of search tools, under any usual field names, as the mappings that `pyrag.retrieval.checked` reads.

Names are compared without case and marks, so that `pageContent` is `page_content`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

_TEXT = (
    "text", "content", "contents", "pagecontent", "passage", "passagetext", "paragraphtext", "chunk", "chunktext",
    "snippet", "excerpt", "extract", "body", "abstract", "markdown", "value", "description", "summary",
)  # fmt: skip
_TITLE = ("title", "name", "heading", "headline", "documenttitle", "doctitle", "subject", "label", "filename")
_SOURCE = ("source", "url", "uri", "link", "href", "path", "filepath", "filename", "file", "permalink")
_ID = ("id", "docid", "documentid", "chunkid", "passageid", "uuid", "key", "uri", "url", "link", "permalink")
_SCORE = ("score", "relevancescore", "relevance", "similarity", "rerankscore")
_LISTS = (
    "passages", "results", "result", "searchresults", "documents", "docs", "hits", "matches", "items", "chunks",
    "records", "entries", "snippets", "nodes", "points", "objects", "rows", "data", "value", "response", "output",
)  # fmt: skip
_INSIDE = (
    "document", "doc", "source", "payload", "fields", "attributes", "properties", "node", "chunk", "metadata", "meta",
)  # fmt: skip
"""Nested mappings that hold some fields of a hit, the most telling first."""
MAX_DEPTH = 4  # of nested mappings


def hits_in(value: Any, depth: int = MAX_DEPTH) -> list[Any]:
    """Return the hits of a reply: the reply itself if it is a list, or a list inside it.

    Args:
        value: JSON value.
        depth: Maximum depth of nested mappings to search.
    """
    return _list_in(value, depth) or []


def _list_in(value: Any, depth: int) -> list[Any] | None:
    """Return the hits of a reply; an empty list if it has a list of hits without any, None if it has no such list."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    if not isinstance(value, Mapping) or depth < 1:
        return None
    fields = _by_plain_name(value)
    named = [_list_in(fields[name], depth - 1) for name in _LISTS if isinstance(fields.get(name), list | Mapping)]
    is_empty = [] in named and not any(named)
    others = () if is_empty else (_list_in(item, depth - 1) for item in value.values() if _has_hits(item))
    if hits := next(filter(None, chain(named, others)), None):
        return hits
    return [value] if _text_of(_flat(value)) else [] if is_empty else None


def fields_of_hit(hit: Any) -> Any:
    """Return a hit with the field names `id`, `title`, `text`, `source` and `score`. A plain text becomes `text`.

    Any other value is returned unchanged, so that `checked` drops it.
    """
    if isinstance(hit, str):
        return {"text": hit}
    if not isinstance(hit, Mapping):
        return hit
    fields = _flat(hit)
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


def _has_hits(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and all(isinstance(item, str | Mapping) for item in value)
    )


def _by_plain_name(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return fields by their names without case and marks; values that are null or empty are left out."""
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        if value is not None and value != "":
            plain.setdefault("".join(filter(str.isalnum, str(name).lower())), value)
    return plain


def _flat(hit: Mapping[Any, Any], depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Return the fields of a hit by their plain names, including the fields of its nested mappings."""
    fields = _by_plain_name(hit)
    inside = [fields.pop(name) for name in _INSIDE if isinstance(fields.get(name), Mapping)] if depth else []
    for inner in inside:
        fields = _flat(inner, depth - 1) | fields
    return fields


def _text_of(hit: Mapping[str, Any]) -> str | None:
    return next((text for name in _TEXT if (text := _joined(hit.get(name))).strip()), None)


def _joined(value: Any) -> str:
    """Return a text, or the joined texts of a list, such as the snippets of a page; empty for any other value."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value if isinstance(value, str) else ""


def _first(hit: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value for key in names if isinstance(value := hit.get(key), str | int | float)), None)


def _number(value: Any) -> float | None:
    """Return a score, which may be written as a text."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
