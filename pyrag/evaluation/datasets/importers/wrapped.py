"""Records inside the only object of a JSON file: a list under a name, records by their ids, articles with questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEPTH = 3  # of objects around the records


def records_in(value: Any) -> Iterator[Any]:
    """Yield the records of a release that is a single JSON object; the object itself if it is a record.

    Args:
        value: The object.
    """
    for record in _records(value, _DEPTH):
        if isinstance(record, dict) and isinstance(record.get("paragraphs"), list) and "question" not in record:
            yield from _questions_of_article(record)
        else:
            yield record


def _records(value: Any, depth: int) -> list[Any]:
    if not isinstance(value, dict) or depth < 1 or any("question" in str(key).lower() for key in value):
        return [value]
    inside = list(value.values())
    if lists := [item for item in inside if isinstance(item, list) and item and isinstance(item[0], dict)]:
        return [record for item in lists for record in item]
    objects = {key: item for key, item in value.items() if isinstance(item, dict)}
    if not objects or len(objects) < len(inside):
        return [value]
    by_id = [_records(item, depth - 1) for item in objects.values()]
    return [
        {"id": key, **record} if isinstance(record, dict) and len(records) == 1 else record
        for key, records in zip(objects, by_id, strict=True)
        for record in records
    ]


def _questions_of_article(article: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the questions of one of SQuAD's articles, each with its paragraph."""
    for paragraph in article["paragraphs"]:
        for question in paragraph.get("qas") or ():
            yield {
                "id": question.get("id"),
                "question": question.get("question"),
                "answers": question.get("answers"),
                "answerable": not question.get("is_impossible"),
                "title": article.get("title", ""),
                "context": paragraph.get("context", ""),
            }
