"""JSON as models write it, read in linear time: comments, commas too many or too few, any quotes, Python's literals.

A reply is searched for the outermost values that open with a given bracket. Reading one never looks at a character more
than a few times, and all attempts of one text share a budget of steps, so a text of brackets costs no more than prose.
Left out: what is cut off. A value that is never closed is none.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

_MAX_DEPTH = 30
_WORK = 3  # characters read for one of the text, over all attempts
_LINES = 64  # characters searched for line ends in the time that reading one takes
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
# What goes on behind a quote is the list, and not the sentence that the quote stands in.
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
    """No value here."""


class _TooDeepError(_UnreadableError):
    """No value here, nor within: nobody means brackets that deep."""


def values_in(text: str, opening: str) -> Iterator[Any]:
    """Yield the outermost lists and objects of a text, in order.

    Args:
        text: Any text.
        opening: The brackets that a value may begin with: "[", "{" or both.
    """
    begins = re.compile(f"[{re.escape(opening)}]")
    left, found = _WORK * len(text) + 2_000, begins.search(text)
    while found is not None and left > 0:
        value, end, cost = _value_at(text, found.start(), left)
        if isinstance(value, list | dict):
            yield value
        left -= cost
        found = begins.search(text, end)


def _value_at(text: str, start: int, left: int) -> tuple[Any, int, int]:
    """The value that begins there or None, where to go on, and how many characters were looked at."""
    try:
        value, end = _STRICT.raw_decode(text, start)
        return value, end, end - start
    except json.JSONDecodeError as error:
        cost = error.pos - start + 1 + error.pos // _LINES  # making the error counts the lines before it
    except (RecursionError, ValueError):  # also for a number of thousands of digits
        cost = sys.getrecursionlimit()
    reader = _LooseReader(text, start, left)
    try:
        return reader.value(), reader.at, cost + reader.at - start
    except _TooDeepError:
        return None, reader.furthest + 1, cost + reader.furthest - start
    except _UnreadableError:
        return None, start + 1, cost + reader.furthest - start


class _LooseReader:
    """A place in a text from which values are read. `furthest` is the end of what was looked at."""

    def __init__(self, text: str, start: int, work: int) -> None:
        self.text, self.at, self.furthest = text, start, start
        self._end = min(len(text), start + work)
        self._depth = 0
        self._loose = 0  # objects around the place: in them, words need no quotes

    def value(self, after: re.Pattern[str] = _AFTER_ITEM) -> Any:
        """Read a value. `after` says what may stand behind it where it is a text."""
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
        """Pass blanks and comments; whether a line ended among them."""
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
        found = self.text.find(mark, self.at, self._end)
        self.at = self._end if found < 0 else found + width

    def _array(self) -> list[Any]:
        closing = "]" if self._peek() == "[" else ")"
        self.at += 1
        found: list[Any] = []
        while self._more(closing):
            if self.text.startswith("...", self.at):
                self.at += 3
            else:
                found.append(self.value())
            self._separated(closing)
        return found

    def _object(self) -> Any:
        self.at += 1
        self._loose += 1
        found: dict[str, Any] = {}
        items: list[Any] = []
        while self._more("}"):
            key = self._key()
            self._skip()
            if self._peek() in (":", "：", "="):
                self.at += 2 if self.text.startswith("=>", self.at) else 1
                self._skip()
                found[str(key)] = self.value(_AFTER_FIELD)
            else:  # a set, as Python writes it
                items.append(key)
            self._separated("}")
        self._loose -= 1
        if items and found:
            raise _UnreadableError
        return items or found

    def _more(self, closing: str) -> bool:
        """Pass what stands before an item; False at the end of the list, which is passed too."""
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
        found = _KEY.match(self.text, self.at, self._end) or _ITEM.match(self.text, self.at, self._end)
        if found is None:
            raise _UnreadableError
        self.at = found.end()
        return found[0]

    def _string(self, after: re.Pattern[str]) -> str:
        quote = self._peek()
        if self.text.startswith(quote * 3, self.at):
            return self._triple(quote * 3)
        closers = _CLOSERS[quote]
        self.at += 1
        parts: list[str] = []
        stops = re.compile(rf"[\\{closers}]")
        while found := stops.search(self.text, self.at, self._end):
            parts.append(self.text[self.at : found.start()])
            self.at = found.end()
            if found[0] == "\\":
                parts.append(self._escaped())
            elif after.match(self.text, self.at, self._end):
                return "".join(parts)
            else:
                parts.append(found[0])
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
        found = _ITEM.match(self.text, self.at, self._end)
        if found and (found[0].casefold() in _WORDS or _NUMBER.match(found[0])):
            self.at = found.end()
            return _WORDS[found[0].casefold()] if found[0].casefold() in _WORDS else _number(found[0])
        phrase = _PHRASE.match(self.text, self.at, self._end) if self._loose else None
        if phrase is None or not phrase[0].strip():
            raise _UnreadableError
        self.at = phrase.end()
        return phrase[0].strip()


def _number(text: str) -> int | float:
    value = float(text)
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else value
