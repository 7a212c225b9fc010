"""Running text cut into passages along its structure: headings, paragraphs, sentences.

`chunks` takes lines and yields titled texts with their place: at most `MAX_UNITS` units a text and, if a section has
enough, mostly at least `MIN_UNITS`. A unit is a word, one character of a script without spaces, or 40 characters of an
overlong word. Only white space is lost: every other character ends up in a text, in the same order, or, for a Markdown
heading, in the titles of its section; so places are found by counting characters. Memory is bounded by one
paragraph, and a paragraph by `_PARAGRAPH`.

Left out: overlap between passages, tables as units. Reading files is `documents`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MIN_UNITS = 100
MAX_UNITS = 180

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Character ranges of scripts that put no spaces between words (Han, kana, Thai, Lao, Burmese, Khmer)."""

_AIM = 150  # units of a piece of a long paragraph: room for the sentence that is half over the line
_PARAGRAPH = 1 << 16  # characters; a longer one is cut at a line end
_UNIT = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]{{1,40}}")
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’》）]*|\n)\s*")
_ABBREVIATION = re.compile(
    r"\b(?:[A-Za-z]|[A-Z][a-z]|Mrs|Inc|Ltd|vol|etc|e\.g|i\.e|cf|vs|no|approx|Prof|Gen|Sen|Rev|Capt|Col)\.$"
)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_WORD = re.compile(r"\S+")
_KEEPS_ITS_LINE = re.compile(r"\s*(?:[-*+•|>]|\d+[.)])\s|\s{4}|\|")


@dataclass(frozen=True, slots=True)
class Chunk:
    """`start` and `end` count characters of the joined lines; a title is not in between."""

    title: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Block:
    """A heading of a level, or a paragraph (0), and the lines it was made of, which begin at `start`."""

    level: int
    text: str
    start: int = 0
    raw: str = ""


def chunks(lines: Iterable[str], name: str, *, markdown: bool) -> Iterator[Chunk]:
    """Cut one document into passages along its structure.

    Args:
        lines: The text, with line ends.
        name: Title of passages before the first heading.
        markdown: True if headings and code fences are recognised.

    Returns:
        Chunks in the order of the text.
    """
    section = _Section([_Block(0, name)])
    fresh = True
    for block in _blocks(lines, markdown=markdown):
        if block.level:
            yield from section.end(block.level)
            section = _Section([] if fresh else section.path, block)
        else:
            yield from section.add(block)
        fresh = False
    yield from section.end(0)


class _Section:
    """The paragraphs under one heading, yielded as passages as soon as there are enough."""

    def __init__(self, path: list[_Block], heading: _Block | None = None) -> None:
        self.path = path if heading is None else [*(above for above in path if above.level < heading.level), heading]
        self._title = " > ".join(block.text for block in self.path)
        self._alone = heading is not None  # nothing under it yet
        self._body: list[str] = []
        self._source = _Source()

    def add(self, paragraph: _Block) -> Iterator[Chunk]:
        self._alone = False
        self._body.append(paragraph.text)
        self._source.add(paragraph)
        if sum(map(units, self._body)) >= 2 * MAX_UNITS:  # the tail stays, so that what follows can join it
            *done, rest = pack(self._body)
            self._body = [rest]
            yield from self._placed(done, self._source)

    def end(self, level: int) -> Iterator[Chunk]:
        """Yield the rest before a heading of this level (0: the end); a heading without content becomes a text."""
        yield from self._placed(pack(self._body), self._source)
        last = self.path[-1]
        if self._alone and level <= last.level:
            start = last.start + len(last.raw) - len(last.raw.lstrip())
            end = last.start + len(last.raw.rstrip())
            yield from (Chunk(self._title, text, start, end) for text in pack([last.text]))

    def _placed(self, texts: Iterable[str], source: _Source) -> Iterator[Chunk]:
        for text in texts:
            yield Chunk(self._title, text, *source.take(text))


class _Source:
    """Positions of the words of a section, in order."""

    def __init__(self) -> None:
        self._words: deque[tuple[int, int]] = deque()

    def add(self, block: _Block) -> None:
        self._words.extend((block.start + word.start(), block.start + word.end()) for word in _WORD.finditer(block.raw))

    def take(self, text: str) -> tuple[int, int]:
        """Start and end of the next text."""
        left = sum(map(len, text.split()))
        first = end = self._words[0][0]
        while left:
            start, end = self._words.popleft()
            if end - start > left:  # cut inside what white space does not part
                self._words.appendleft((start + left, end))
                end = start + left
            left -= end - start
        return first, end


def pack(paragraphs: Iterable[str]) -> list[str]:
    """Join or cut paragraphs to `MIN_UNITS`-`MAX_UNITS` units; a short rest joins its neighbour if both fit."""
    texts: list[str] = []
    pending = ""
    for paragraph in paragraphs:
        joined = f"{pending}\n{paragraph}" if pending else paragraph
        if units(joined) > MAX_UNITS and units(pending) >= MIN_UNITS:
            texts.append(pending)
            joined = paragraph
        if units(joined) > MAX_UNITS:
            *done, joined = _cut(joined)
            texts += done
        pending = joined
    if pending and texts and units(pending) < MIN_UNITS and units(texts[-1]) + units(pending) <= MAX_UNITS:
        pending = f"{texts.pop()}\n{pending}"
    return [*texts, pending] if pending else texts


def units(text: str) -> int:
    return sum(1 for _ in _UNIT.finditer(text))


def sentences(text: str) -> list[str]:
    """Cut a text after each sentence; the pieces joined are the text."""
    found = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        head = text[max(start, end.start() - 12) : end.start() + 1]
        goes_on = text[end.end() : end.end() + 1].islower() or _ABBREVIATION.search(head)
        if "\n" in end[0] or end[0][0] in "。！？" or not goes_on:
            found.append(text[start : end.end()])
            start = end.end()
    return [*found, text[start:]] if start < len(text) else found


def _cut(text: str) -> list[str]:
    """Cut a text of more than `MAX_UNITS` units into pieces of about equal size, at ends of sentences if possible."""
    total = units(text)
    target = total / -(-total // _AIM)
    pieces: list[str] = []
    size = 0
    for sentence in (part for whole in sentences(text) for part in _short_enough(whole)):
        more = units(sentence)
        if pieces and size < target and size + more <= MAX_UNITS:
            pieces[-1] += sentence
            size += more
        else:
            pieces.append(sentence)
            size = more
    return [piece.strip() for piece in pieces]


def _short_enough(sentence: str) -> Iterator[str]:
    """Yield the sentence, cut between words into equal parts if it alone is over the limit."""
    starts = [unit.start() for unit in _UNIT.finditer(sentence)]
    parts = -(-len(starts) // MAX_UNITS) or 1
    cuts = starts[:: -(-len(starts) // parts) or 1][1:]
    for start, stop in zip([0, *cuts], [*cuts, len(sentence)], strict=True):
        yield sentence[start:stop]


class _Paragraph:
    """The lines of a paragraph so far; they are joined into one, except in lists, tables and code."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._raw: list[str] = []
        self._start = 0
        self.length = 0

    @property
    def lines(self) -> list[str]:
        return self._text

    def add(self, line: str, at: int, *, own_line: bool) -> None:
        if not self._text:
            self._start = at
        self._raw.append(line)
        line = line.rstrip()
        self._text.append("\n" + line if own_line else " " + line.strip())
        self.length += len(line)

    def block(self) -> _Block:
        return _Block(0, "".join(self._text).strip(), self._start, "".join(self._raw))


def _blocks(lines: Iterable[str], *, markdown: bool) -> Iterator[_Block]:
    """Headings and paragraphs in order."""
    paragraph = _Paragraph()
    fence = ""
    at = 0
    for whole in lines:
        line = whole.rstrip()
        heading = None
        before = fence
        if markdown:
            fence = _fence_after(fence, line)
            heading = None if fence else _heading(line, paragraph.lines)
        if line and heading is None:
            paragraph.add(whole, at, own_line=bool(before or fence or _KEEPS_ITS_LINE.match(line)))
        ends = not line or heading or paragraph.length > _PARAGRAPH
        if paragraph.lines and ends and (heading is None or not _UNDERLINE.match(line)):
            yield paragraph.block()
            paragraph = _Paragraph()
        if heading:  # of this line, or the paragraph that it underlines
            above = paragraph.block()
            yield _Block(*heading, above.start if paragraph.lines else at, above.raw + whole)
            paragraph = _Paragraph()
        at += len(whole)
    if paragraph.lines:
        yield paragraph.block()


def _fence_after(fence: str, line: str) -> str:
    """Return the code fence that is open after this line; "" for none."""
    marker = _FENCE.match(line)
    if not marker:
        return fence
    if not fence:
        return marker[1]
    return "" if marker[1].startswith(fence) else fence


def _heading(line: str, paragraph: list[str]) -> tuple[int, str] | None:
    """Return the heading of this line (`# Title`), or of the line before it that this one underlines (`===`)."""
    marked = _HEADING.match(line)
    if marked and (text := _plain(marked[2] or "")):
        return len(marked[1]), text
    underline = _UNDERLINE.match(line)
    if underline and len(paragraph) == 1 and paragraph[0][0] == " " and (text := _plain(paragraph[0])):
        return (1 if underline[1][0] == "=" else 2), text
    return None


def _plain(text: str) -> str:
    return text.replace("**", "").replace("`", "").strip()
