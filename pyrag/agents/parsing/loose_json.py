"""Linear-time reader of JSON as models write it: with comments, missing or extra commas, any quotes, Python literals.

A reply is searched for the outermost values that open with a given bracket. Reading a value never looks at a character
more than a few times, and all attempts on one text share a budget of steps, so a text full of brackets costs no more
than prose. A value that is never closed is ignored.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

_MAX_DEPTH = 30
_WORK = 3  # characters read per character of the text, over all attempts
_LINES = 64  # characters searched for line ends in the time that reading one character takes
_CLOSERS = {
    '"': '"',
    "'": "'",
    "“": "”“\"",
    "”": "”\"",
    "„": "“”\"",
    "«": "»",
    "‘": "’'",
    "’": "’'",
    "`": "`",
    "「": "」",
}  # fmt: skip
_SEPARATORS = ",，、;；"
_BLANK = re.compile(r"\s+")
_KEY = re.compile(r"[^\W\d][\w .-]{0,60}?(?=\s{0,8}(?:[:：=]))")
_ITEM = re.compile(r"[-+\w.%/]{1,40}(?=\s*+(?:[,，\]})]|//|#|\Z))")
_NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?\Z")
_PHRASE = re.compile(r"[^\n,，\]}\[{\"“”]{1,500}")
_COMMENT = r"//|\#|/\*"
_QUOTE = "[\"'“„‘`«]"
_ENDED = rf"\s*+(?:[\]}});；]|\Z|{_COMMENT})|\s+{_QUOTE}(?=[^\s,.?!\]}}])"
# Text after a closing quote that continues the list, rather than the sentence that contains the quote.
_AFTER_ITEM = re.compile(
    rf"{_ENDED}|\s*+[:：=]|\s*+[,，、]\s*+(?:{_QUOTE}|[\[{{(\]}})\d.-]|\Z|{_COMMENT}|[fFrRbB][\"']|\w+\s*[,\]])"
)
_AFTER_FIELD = re.compile(
    rf"{_ENDED}|\s*+[,，、]\s*+(?:{_QUOTE}[^\n:：=]{{0,60}}[:：=]|[^\W\d][\w .-]{{0,60}}[:：=]|[\]}}]|\Z|{_COMMENT})"
)
_PREFIX = re.compile(r"[fFrRbBuU]{1,2}(?=[\"'])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None, "nan": None, "undefined": None}


_STRICT = json.JSONDecoder(strict=False)


class _UnreadableError(Exception):
    """Error for a place without a readable value."""


class _TooDeepError(_UnreadableError):
    """Error for brackets nested too deeply, so that nothing inside can be a value either."""


def values_in(text: str, opening: str) -> Iterator[Any]:
    """Yield the outermost lists and objects of a text, in order.

    Args:
        text: Any text.
        opening: Brackets that a value may begin with: "[", "{" or both.
    """
    begins = re.compile(f"[{re.escape(opening)}]")
    remaining, bracket = _WORK * len(text) + 2_000, begins.search(text)
    while bracket is not None and remaining > 0:
        value, end, cost = _value_at(text, bracket.start(), remaining)
        if isinstance(value, list | dict):
            yield value
        remaining -= cost
        bracket = begins.search(text, end)


def _value_at(text: str, start: int, work: int) -> tuple[Any, int, int]:
    """Return a value at a position (None if unreadable), where to continue, and the number of characters examined."""
    try:
        value, end = _STRICT.raw_decode(text, start)
        return value, end, end - start
    except json.JSONDecodeError as error:
        cost = error.pos - start + 1 + error.pos // _LINES  # creating the error counts the lines before it
    except (RecursionError, ValueError):  # also raised for a number with thousands of digits
        cost = sys.getrecursionlimit()
    reader = _LooseReader(text, start, work)
    try:
        return reader.value(), reader.at, cost + reader.at - start
    except _TooDeepError:
        return None, reader.furthest + 1, cost + reader.furthest - start
    except _UnreadableError:
        return None, start + 1, cost + reader.furthest - start


class _LooseReader:
    """Reader of values at a position in a text. `furthest` is the end of the examined text."""

    def __init__(self, text: str, start: int, work: int) -> None:
        self.text, self.at, self.furthest = text, start, start
        self._end = min(len(text), start + work)
        self._depth = 0
        self._loose = 0  # depth of objects, in which words need no quotes

    def value(self, after: re.Pattern[str] = _AFTER_ITEM) -> Any:
        """Return the next value. `after` is the pattern that must match after a quoted text."""
        char = self._peek()
        if char == "{":
            return self._nested(self._object)
        if char in ("[", "("):
            return self._nested(self._array)
        if prefix := _PREFIX.match(self.text, self.at, self._end):
            self.at = prefix.end()
            char = self._peek()
        return self._string(after) if char in _CLOSERS else self._bare()

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _TooDeepError
        value = read()
        self._depth -= 1
        return value

    def _peek(self) -> str:
        self.furthest = max(self.furthest, self.at)
        return self.text[self.at] if self.at < self._end else ""

    def _skip(self) -> bool:
        """Skip blanks and comments, and return True if a line ended there."""
        start = self.at
        while self.at < self._end:
            if blank := _BLANK.match(self.text, self.at, self._end):
                self.at = blank.end()
            elif self.text.startswith("/*", self.at):
                self._jump("*/", 2)
            elif self.text.startswith(("//", "#"), self.at):
                self._jump("\n", 0)
            else:
                break
        self._peek()
        return "\n" in self.text[start : self.at]

    def _jump(self, mark: str, width: int) -> None:
        place = self.text.find(mark, self.at, self._end)
        self.at = self._end if place < 0 else place + width

    def _array(self) -> list[Any]:
        closing = "]" if self._peek() == "[" else ")"
        self.at += 1
        items: list[Any] = []
        while self._more(closing):
            if self.text.startswith("...", self.at):
                self.at += 3
            else:
                items.append(self.value())
            self._separated(closing)
        return items

    def _object(self) -> Any:
        self.at += 1
        self._loose += 1
        fields: dict[str, Any] = {}
        items: list[Any] = []
        while self._more("}"):
            key = self._key()
            self._skip()
            if self._peek() in (":", "：", "="):
                self.at += 2 if self.text.startswith("=>", self.at) else 1
                self._skip()
                fields[str(key)] = self.value(_AFTER_FIELD)
            else:  # a set, as Python writes it
                items.append(key)
            self._separated("}")
        self._loose -= 1
        if items and fields:
            raise _UnreadableError
        return items or fields

    def _more(self, closing: str) -> bool:
        """Skip to the next item and return True; at the end of the list, skip it and return False."""
        self._skip()
        while self._peek() and self._peek() in _SEPARATORS:
            self.at += 1
            self._skip()
        if self._peek() == closing:
            self.at += 1
            return False
        if not self._peek():
            raise _UnreadableError
        return True

    def _separated(self, closing: str) -> None:
        broken = self._skip()
        follows = self._peek()
        if follows not in (*_SEPARATORS, closing, *_CLOSERS) and not broken:
            raise _UnreadableError

    def _key(self) -> Any:
        if self._peek() in _CLOSERS:
            return self._string(_AFTER_ITEM)
        key = _KEY.match(self.text, self.at, self._end) or _ITEM.match(self.text, self.at, self._end)
        if key is None:
            raise _UnreadableError
        self.at = key.end()
        return key[0]

    def _string(self, after: re.Pattern[str]) -> str:
        quote = self._peek()
        if self.text.startswith(quote * 3, self.at):
            return self._triple(quote * 3)
        closers = _CLOSERS[quote]
        self.at += 1
        parts: list[str] = []
        stops = re.compile(rf"[\\{closers}]")
        while stop := stops.search(self.text, self.at, self._end):
            parts.append(self.text[self.at : stop.start()])
            self.at = stop.end()
            if stop[0] == "\\":
                parts.append(self._escaped())
            elif after.match(self.text, self.at, self._end):
                return "".join(parts)
            else:
                parts.append(stop[0])
        self.furthest = self._end
        raise _UnreadableError

    def _triple(self, quotes: str) -> str:
        end = self.text.find(quotes, self.at + 3, self._end)
        if end < 0:
            self.furthest = self._end
            raise _UnreadableError
        text, self.at = self.text[self.at + 3 : end], end + 3
        return text.strip()

    def _escaped(self) -> str:
        char = self._peek()
        self.at += 1
        if char == "u" and re.match(r"[0-9a-fA-F]{4}", self.text[self.at : self.at + 4]):
            code, self.at = self.text[self.at : self.at + 4], self.at + 4
            return chr(int(code, 16))
        return _ESCAPES.get(char, char)

    def _bare(self) -> Any:
        word = _ITEM.match(self.text, self.at, self._end)
        if word and (word[0].casefold() in _WORDS or _NUMBER.match(word[0])):
            self.at = word.end()
            return _WORDS[word[0].casefold()] if word[0].casefold() in _WORDS else _number(word[0])
        phrase = _PHRASE.match(self.text, self.at, self._end) if self._loose else None
        if phrase is None or not phrase[0].strip():
            raise _UnreadableError
        self.at = phrase.end()
        return phrase[0].strip()


def _number(text: str) -> int | float:
    value = float(text)
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else value
