"""Values as programs get them and leave them: passages as records, answers as texts, variables as JSON."""

from __future__ import annotations

from typing import Any

from pyrag.episode.unknown_values import absent_answer
from pyrag.trace.model import Answer, Passage
from pyrag_sandbox import Record, Text


def answer_text(answer: Answer, asked: str, source: str) -> Text:
    """An answer to the query `asked` as the program with this source sees it."""
    fields = {"known": answer.known, "citations": list(answer.citations), "confidence": answer.confidence}
    return Text(answer.text, fields, None if answer.known else absent_answer(source, asked))


def record(passage: Passage) -> Record:
    """A passage as programs see it: `doc.text`, `doc["title"]`."""
    fields = {"id": passage.id, "title": passage.title, "text": passage.text, "score": passage.score}
    return Record(fields)


def plain(value: Any) -> Any:
    """A program's value as JSON."""
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Record):
        return {"passage": value.fields["id"]} if "id" in value.fields else dict(value.fields)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value
