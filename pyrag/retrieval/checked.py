"""Checks and repairs of a retriever's passages, so that its mistakes do not make a question fail.

A lone surrogate, a score that is not a number, or a text that is too long is repaired. Passages that cannot be repaired
are omitted. `Passages.notes` reports both. The limits are the sandbox's limits for values that enter it.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pyrag._io.excerpts import excerpt
from pyrag.retrieval.documents.model import split_contents
from pyrag.retrieval.filters.metadata import metadata_of
from pyrag.trace.model import Passage

MAX_TEXT = 1_000_000  # bytes of one passage
MAX_TEXTS = 7_000_000  # bytes of all passages of one retrieval
_MAX_NAME = 4_096  # characters of an id, a title or a source
_MAX_PARTS = 100
_MAX_METADATA = 1000  # fields per passage; the rest is left out
FIELDS = ("id", "title", "text", "contents", "source", "start", "end", "parts", "metadata", "score")
"""Fields of a document in JSON."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # each takes six bytes on its way into a sandbox
_SHOWN = 60


class Passages(list[Passage]):
    """List of passages.

    Attributes:
        notes: Sentences about repairs and omissions.
    """

    def __init__(
        self, passages: Iterable[Passage] = (), notes: Iterable[str] = (), *, are_checked: bool = False
    ) -> None:
        super().__init__(passages)
        self.notes = tuple(notes)
        self._checked = tuple(self) if are_checked else ()

    @property
    def are_checked(self) -> bool:
        """True if `checked` made this list and it has not changed since. An empty list never counts as checked."""
        return len(self) == len(self._checked) > 0 and all(map(operator.is_, self, self._checked))


def checked(items: Iterable[object], topk: int) -> Passages:
    """Return the first passages of a list, repaired and without unusable objects.

    Args:
        items: Passages, or mappings with a `text`.
        topk: Maximum number of passages.

    Returns:
        Passages with distinct ids; `notes` describe every repair and omission.
    """
    if isinstance(items, Passages) and items.are_checked and len(items) <= topk:
        return items
    check = _Check()
    passages: list[Passage] = []
    for item in list(items)[: max(topk, 0)]:
        passage = check.passage(item)
        if passage is not None:
            passages.append(passage)
    own = tuple(getattr(items, "notes", ()))
    return Passages(check.distinct(passages), (*own, *check.notes()), are_checked=True)


def content_id(title: str, text: str) -> str:
    """Return the id for a passage without its own id.

    Args:
        title: Title of the passage.
        text: Text of the passage.
    """
    return hashlib.blake2b(f"{title}\0{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


class _Check:
    """Check of one list of passages."""

    def __init__(self) -> None:
        self._left = MAX_TEXTS
        self._mended: Counter[str] = Counter()

    def passage(self, item: object) -> Passage | None:
        try:
            return self._read(item)
        except Exception as error:  # of any kind: objects from other packages may raise anything
            self._mended[f"left out: an object that fails ({type(error).__name__})"] += 1
            return None

    def _read(self, item: object) -> Passage | None:
        passage = item if type(item) is Passage or not isinstance(item, Mapping) else _from_mapping(item)
        if not isinstance(passage, Passage) or not isinstance(passage.text, str):
            what = "a document without a text" if isinstance(item, Mapping) else f"no pyrag.Passage ({shown(item)})"
            self._mended[f"left out: {what}"] += 1
            return None
        if not _is_sound(passage):
            passage = self._sound(passage)
        return self._fitting(passage)

    def distinct(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages with distinct ids; equal passages are returned once."""
        counts = Counter(passage.id for passage in passages)
        by_id: dict[str, Passage] = {}
        for passage in passages:
            if counts[passage.id] > 1:
                passage = replace(passage, id=f"{passage.id}#{content_id(passage.title, passage.text)}")
            by_id.setdefault(passage.id, passage)
        for key, count in counts.items():
            if count > 1:
                self._mended[f"{count} passages have the same id {shown(key)}: their texts tell them apart now"] = 1
        return list(by_id.values())

    def notes(self) -> list[str]:
        return [note if count == 1 else f"{note}; {count} times" for note, count in self._mended.items()]

    def _sound(self, passage: Passage) -> Passage:
        text, title = self._text(passage.text), self._text(_name(passage.title))
        source, start, end = self._text(_name(passage.source)), _place(passage.start), _place(passage.end)
        key = self._text(_name(passage.id))
        if not 0 < len(key) < _MAX_NAME:
            key = content_id(title, text)
        score, parts = self._score(passage.score), self._parts(passage.parts)
        metadata = self._metadata(passage.metadata)
        return Passage(key, title, text, score, source, parts, None if end is None else start, end, metadata)

    def _metadata(self, metadata: object) -> dict[str, Any]:
        if not isinstance(metadata, Mapping):
            return {}
        fields, left_out = metadata_of(dict(islice(metadata.items(), _MAX_METADATA)))
        if left_out or len(metadata) > _MAX_METADATA:
            self._mended["fields of metadata that are too large were left out"] += 1
        return fields

    def _text(self, text: str) -> str:
        text = str(text)  # a subclass may be anything
        if _has_halves(text):
            self._mended["half a character was replaced"] += 1
            text = text.encode("utf-8", "replace").decode()
        return _CONTROLS.sub(" ", text)

    def _score(self, score: object) -> float:
        try:
            number = float(score)  # type: ignore[arg-type]
        except Exception:  # the object is foreign, and may raise anything
            number = math.nan
        if math.isfinite(number):
            return number
        self._mended["a score that is not a finite number counts as 0"] += 1
        return 0.0

    def _parts(self, parts: object) -> dict[str, float]:
        if not isinstance(parts, Mapping):
            return {}
        some = list(parts.items())[:_MAX_PARTS]
        return {_name(key): self._score(value) for key, value in some}

    def _fitting(self, passage: Passage) -> Passage | None:
        size = len(passage.text) if passage.text.isascii() else len(passage.text.encode())
        room = min(MAX_TEXT, self._left)
        self._left -= min(size, room)
        if size <= room:
            return passage
        if not room:
            self._mended[f"left out: more than {MAX_TEXTS // 1_000_000} MB of text at once"] += 1
            return None
        self._mended[f"a passage of {size / 1e6:.1f} MB was cut to {room / 1e6:.1f} MB"] += 1
        return replace(passage, text=passage.text.encode()[:room].decode("utf-8", "ignore"), start=None, end=None)


def _is_sound(passage: Passage) -> bool:
    """Return whether a passage needs no repair, as is true of nearly all. This takes microseconds."""
    key, title, text, source, parts = passage.id, passage.title, passage.text, passage.source, passage.parts
    return (
        type(key) is type(title) is type(text) is type(source) is str
        and 0 < len(key) <= _MAX_NAME
        and len(title) <= _MAX_NAME
        and len(source) <= _MAX_NAME
        and type(passage.score) is float
        and math.isfinite(passage.score)
        and type(parts) is type(passage.metadata) is dict
        and not passage.metadata
        and (not parts or all(type(value) is float and math.isfinite(value) for value in parts.values()))
        and (passage.start is None or type(passage.start) is int)
        and (passage.end is None or type(passage.end) is int)
        and not _needs_mending(f"{key}{title}{source}{text}")
    )


def _needs_mending(text: str) -> bool:
    return _CONTROLS.search(text) is not None or _has_halves(text)


def _has_halves(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _from_mapping(mapping: Mapping[Any, Any]) -> Passage | None:
    """Return the passage for a JSON object, as sent by servers."""
    return passage_of(map(mapping.get, FIELDS))


def passage_of(values: Iterable[Any]) -> Passage | None:
    """Make a passage from the values of `FIELDS`, in this order and of any type. Return None if there is no text."""
    key, title, text, contents, source, start, end, parts, metadata, score = values
    if text is None and isinstance(contents, str):
        title, text = split_contents(contents, _name(title))
    if not isinstance(text, str):
        return None
    return Passage(
        "" if key is None else key, _name(title), text, 0.0 if score is None else score, _name(source),
        parts if isinstance(parts, dict) else {}, start, end, metadata if isinstance(metadata, dict) else {},
    )  # fmt: skip


def _name(value: object) -> str:
    """Return the text of a field for display; empty unless it is a text or a whole number."""
    if isinstance(value, str):
        return value[:_MAX_NAME]
    return str(value) if type(value) is int else ""


def _place(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def shown(value: object) -> str:
    """Return an excerpt of an object's `repr`."""
    try:
        return excerpt(repr(value), _SHOWN)
    except Exception:  # the object is foreign, and may raise anything
        return type(value).__name__
