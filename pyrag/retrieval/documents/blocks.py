"""Blocks of running text: headings and paragraphs.

Lines of prose that were wrapped at a width are joined. Lines with a meaning of their own are not: list items, columns,
records such as `Name: value`, addresses, rows of tables, code. No library makes this distinction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import NamedTuple

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Character ranges of scripts that put no spaces between words (Han, kana, Thai, Lao, Burmese, Khmer)."""

PARAGRAPH = 1 << 16  # characters; a longer one is cut at a line end
_WIDE = 60  # characters of a line that was filled with prose
_WORD = re.compile(r"\S+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|\\[#>*_+\-`~=<]")
_MARKED = re.compile(
    r"\s*(?:[-*+•|>–—·‣▪▫◦●○■□☐☑☒✓✔✗➢➤►→]|\d+(?:\.\d+)*[.)]|\(?[A-Za-z][.)]|\(?[ivxIVX]{1,5}[.)]|\(\d+\)|§\s?\d+)\s"
    r"|\s{4}|\||[-=+|:]{3,}$|\s*(?:[①-⑳]|(?:\d+|[一二三四五六七八九十]+)、|[（(][一二三四五六七八九十\d]+[）)])"
)
_COLUMNS = re.compile(r"\S(?:\s{2,}|\t)\S|\s\|\s")
_RECORD = re.compile(r"\s*[^\W\d_][^:.!?]{0,40}:(?:\s|$)")
_STAMPED = re.compile(  # lines of logs and chats, which begin with a date, a time, an address or a level
    r"\s*[\[(<]?(?:\d{4}[-/.]\d{1,2}[-/.]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b|\d{1,2}:\d{2}\b"
    r"|[A-Z][a-z]{2},?\s+(?:[A-Z][a-z]{2}\s+)?\d{1,2}\s|(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|[^\[\]()<>]{1,40}\]\s|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)"
)
_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?")  # between the heading of a table and its rows
_CONTINUES = re.compile(rf"\s*(?:[a-zß-öø-ÿа-яα-ω]|[{UNSPACED}]|[,;)\]])")
_SENTENCE_ENDS = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")


class Word(NamedTuple):
    """Position of a word in its source, and its length in characters after decoding."""

    start: int
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class Block:
    """Heading or paragraph, with the positions of its words.

    Attributes:
        level: Level of a heading, from 1; 0 for a paragraph.
        head: Heading of a table, with which the text begins.
        repeated: Number of characters at the beginning that repeat the heading of a table.
    """

    level: int
    text: str
    words: Sequence[Word] = ()
    head: str = ""
    repeated: int = 0


class SourceLine(NamedTuple):
    """Line of a source, with the position of its first character.

    Attributes:
        own: Whether the line is never joined with its neighbours.
        encoded: Whether the line may hold entities and escaped marks.
    """

    text: str
    at: int
    own: bool = False
    encoded: bool = False

    @property
    def decoded(self) -> str:
        return _ENTITY.sub(_decoded, self.text) if self._is_encoded(self.text) else self.text

    def _is_encoded(self, text: str) -> bool:
        return self.encoded and ("&" in text or "\\" in text)

    def words(self) -> Iterable[Word]:
        """Return the words of the line with their positions."""
        at = self.at
        if not self._is_encoded(self.text):
            return [Word(at + word.start(), at + word.end(), len(word[0])) for word in _WORD.finditer(self.text)]
        return [
            Word(at + word.start(), at + word.end(), sum(map(len, _ENTITY.sub(_decoded, word[0]).split())))
            for word in _WORD.finditer(self.text)
        ]


def _decoded(entity: re.Match[str]) -> str:
    return unescape(entity[0]) if entity[0][0] == "&" else entity[0][1:]


def words_of(lines: Iterable[SourceLine]) -> list[Word]:
    return [word for line in lines for word in line.words()]


def plain_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Yield the paragraphs of plain text, which blank lines separate, and its tables of Markdown.

    Args:
        lines: Lines of the text, with line ends.
    """
    at = 0
    source_lines: list[SourceLine] = []
    for text in lines:
        source_lines.append(SourceLine(text, at))
        at += len(text)
        if not text.strip() or at - source_lines[0].at > PARAGRAPH:
            yield from _paragraph_or_table(source_lines)
            source_lines = []
    yield from _paragraph_or_table(source_lines)


def _paragraph_or_table(lines: Sequence[SourceLine]) -> Iterator[Block]:
    rules = (place for place in range(1, len(lines)) if _RULE.fullmatch(lines[place].text.strip()))
    rule = next((place for place in rules if "|" in lines[place - 1].text), None)
    if rule is None:
        yield from paragraph(lines)
        return
    end = next((place for place in range(rule, len(lines)) if "|" not in lines[place].text), len(lines))
    yield from paragraph(lines[: rule - 1])
    yield from table(lines[rule - 1 : end])
    yield from paragraph(lines[end:])


def table(lines: Sequence[SourceLine]) -> Iterator[Block]:
    """Yield a table of Markdown; a long table in parts, each with the heading."""
    texts = [line.decoded.strip() for line in lines]
    texts[1:2] = ["".join(line.split()) for line in texts[1:2]]  # the rule below the heading, which is repeated
    head = "\n".join(texts[:2])
    start, size = 0, 0
    for number, text in enumerate(texts, 1):
        size += len(text)
        if size < PARAGRAPH and number < len(texts):
            continue
        body = "\n".join(texts[start:number])
        words = words_of(lines[start:number])
        if start < 2 or not words:
            yield Block(0, body, words, head if number > 2 else "")
        else:
            yield Block(0, f"{head}\n{body}", words, head, len(head))
        start, size = number, 0


def paragraph(lines: Sequence[SourceLine]) -> Iterator[Block]:
    """Yield the paragraph that consists of these lines, or nothing if all are blank."""
    lines = [line for line in lines if line.text.strip()]
    if lines:
        yield Block(0, _text(lines), words_of(lines))


def _text(lines: Sequence[SourceLine]) -> str:
    keeps = [line.own or bool(_MARKED.match(line.text)) for line in lines]
    others = [line.text.strip() for line, own in zip(lines, keeps, strict=True) if not own]
    is_record = sum(map(bool, map(_RECORD.match, others))) >= max(2, len(others) / 2)
    is_columns = sum(map(bool, map(_COLUMNS.search, others))) >= max(2, len(others) / 2)
    is_log = sum(map(bool, map(_STAMPED.match, others))) >= max(2, len(others) / 2)
    is_prose = not is_record and not is_columns and not is_log and _is_prose(others)
    width = max(map(len, others), default=0)
    text = lines[0].decoded.rstrip().strip("\n")
    for before, line, own in zip(lines, lines[1:], keeps[1:], strict=False):
        joins = not own and not _breaks(before.text) and _joins(before.text, line.text, width, is_prose=is_prose)
        text += f" {line.decoded.strip()}" if joins else f"\n{line.decoded.rstrip()}"
    return text.strip()


def _is_prose(lines: Sequence[str]) -> bool:
    """Return whether lines are a text that was wrapped at a width."""
    continues = any(_CONTINUES.match(after) and not _SENTENCE_ENDS.search(before) for before, after in pairwise(lines))
    return len(lines) < 2 or continues or max(map(len, lines)) >= _WIDE


def _joins(before: str, line: str, width: int, *, is_prose: bool) -> bool:
    """Return whether a line continues the previous line."""
    before, first = before.strip(), line.split(maxsplit=1)[0]
    if _MARKED.match(before + " ") and _CONTINUES.match(line):
        return True  # the rest of a list item
    is_full = len(before) + 1 + len(first) > width
    return is_prose and (is_full or not _SENTENCE_ENDS.search(before) or bool(_CONTINUES.match(line)))


def _breaks(line: str) -> bool:
    """Return whether a line ends with a Markdown line break."""
    return line.rstrip("\r\n").endswith(("  ", "\\"))
