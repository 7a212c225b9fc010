"""Records of a JSON file of any size, one after another.

Accepted are a list of objects, an object of objects by id, an object with lists of objects, also one level deeper
(`{"hits": {"hits": [...]}}`), and an object that is a record itself (it has `text` or `contents`). Only one value at a
time is in memory.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from pyrag.retrieval.documents.model import MAX_LINE

Element = tuple[str, Any, int, int]
"""Id or "", the decoded value, and its first and last character in the file."""

_PIECE = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


class NotJSON(ValueError):  # noqa: N818 (says what the file is)
    """Error for a file that is not JSON in one of the accepted forms."""


def elements(stream: IO[bytes], on_constant: Callable[[], None] = lambda: None) -> Iterator[Element]:
    """Yield the records of a file.

    Args:
        stream: The open file.
        on_constant: Called for each NaN and Infinity, which become null.

    Raises:
        NotJSON: The file is not JSON, or has another form.
        UnicodeDecodeError: The file is not UTF-8.
    """
    text = _Text(stream, on_constant)
    first = text.peek()
    if first == "[":
        yield from _items(text)
    elif first == "{":
        yield from _entries(text)
    elif first:
        raise NotJSON("it holds neither a list nor an object")
    if text.peek():
        raise NotJSON(f"something follows the end at character {text.at}")


def _items(text: _Text) -> Iterator[Element]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    while True:
        text.peek()
        start = text.at
        value = text.value()
        yield "", value, start, text.at
        if text.take(",]") == "]":
            return


def _entries(text: _Text) -> Iterator[Element]:
    text.peek()
    begin = text.at
    plain: dict[str, Any] = {}  # fields, in case the object is a record itself
    text.take("{")
    following = text.peek()
    if following == "}":
        text.take("}")
    while following != "}":
        key = text.value()
        if not isinstance(key, str):
            raise NotJSON(f"a key that is not a string before character {text.at}")
        text.take(":")
        opening = text.peek()
        start = text.at
        if opening == "[":
            yield from _items(text)
        else:
            value = text.value()
            if isinstance(value, dict):
                yield from _inside(key, value, start, text.at)
            else:
                plain[key] = value
        following = text.take(",}")
    if "text" in plain or "contents" in plain:
        yield "", plain, begin, text.at


def _inside(key: str, value: dict[str, Any], start: int, end: int) -> Iterator[Element]:
    """Yield the records in the lists of an object, at the object's place; without lists, the object itself."""
    records = [] if "text" in value or "contents" in value else [item for item in value.values() if _is_records(item)]
    if records:
        yield from (("", record, start, end) for items in records for record in items)
    else:
        yield key, value, start, end


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_record, value))


def is_record(value: Any) -> bool:
    """Return whether a value has a text, or a single object that has one.

    Args:
        value: Decoded JSON.
    """
    return isinstance(value, dict) and (has_text(value) or len(texts_inside(value)) == 1)


def has_text(value: dict[str, Any]) -> bool:
    """Return whether an object has the text of a passage."""
    return isinstance(value.get("text"), str) or isinstance(value.get("contents"), str)


def texts_inside(value: dict[str, Any]) -> list[str]:
    """Return the names of the objects inside an object that have a text, such as `_source`."""
    return [name for name, inner in value.items() if isinstance(inner, dict) and has_text(inner)]


class _Text:
    """Decoded text of a file, from a position onwards; only the needed part is read."""

    def __init__(self, stream: IO[bytes], on_constant: Callable[[], None]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._scan = json.JSONDecoder(parse_constant=lambda _: on_constant()).raw_decode
        self._buffer = ""
        self._place = 0  # in the buffer
        self._before = 0  # characters that left the buffer
        self._ended = False

    @property
    def at(self) -> int:
        return self._before + self._place

    def peek(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            space = _SPACE.match(self._buffer, self._place)
            assert space is not None
            self._place = space.end()
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._more(_PIECE):
                return ""

    def take(self, allowed: str) -> str:
        character = self.peek()
        if not character or character not in allowed:
            raise NotJSON(f"expected {' or '.join(allowed)} at character {self.at}, not {character or 'the end'}")
        self._place += 1
        return character

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._scan(self._buffer, self._place)
            except RecursionError:
                raise NotJSON(f"values nested too deeply at character {self.at}") from None
            except json.JSONDecodeError as error:
                # The buffer ends within the value, or it is wrong. Doubling the buffer keeps repeated scanning short.
                size = len(self._buffer) - self._place
                if size > MAX_LINE:
                    raise NotJSON(f"a value of more than {MAX_LINE >> 20} MiB at character {self.at}") from None
                if not self._more(max(size, _PIECE)):
                    raise NotJSON(f"{error.msg} at character {self._before + error.pos}") from None
                continue
            if end == len(self._buffer) and self._more(_PIECE):
                continue  # a number may continue
            self._place = end
            return value

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        data = self._stream.read(size)
        self._ended = not data
        self._before += self._place
        self._buffer = self._buffer[self._place :] + self._decoder.decode(data, self._ended)
        self._place = 0
        return True
