"""Cutting of running text into passages along its headings, paragraphs and sentences.

`chunks` takes lines and yields titled texts with their places. A text has at most `MAX_UNITS` units and, if its section
is long enough, usually at least `MIN_UNITS`. A unit is a word, a character of a script without spaces, or 40 characters
of an overlong word. Only white space is lost: every other character is kept in a text, in the same order, or, for a
Markdown heading, in the titles of its section. Positions can therefore be found by counting characters (of decoded
entities). Memory use is limited by the size of a paragraph.

Each part of a table repeats its heading. Passages do not overlap. `blocks` and `markdown` find headings and paragraphs.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyrag.retrieval.documents.blocks import UNSPACED, Block, Word, plain_blocks
from pyrag.retrieval.documents.controls import without_controls

MIN_UNITS = 100
MAX_UNITS = 180

_AIM = 150  # units of a piece of a long paragraph, with room for the sentence that crosses this mark
_MAX_HEAD = 120  # units of the heading of a table that is repeated
_UNIT = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]{{1,40}}")
_LETTERS = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”’》）]*|\n)\s*")
_ABBREVIATION = re.compile(
    r"\b(?:[A-Za-z]|[A-Z][a-z]|Mrs|Inc|Ltd|vol|etc|e\.g|i\.e|cf|vs|no|approx|Prof|Gen|Sen|Rev|Capt|Col)\.$"
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text of a passage with its title. `start` and `end` are positions in the joined lines, without the title."""

    title: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Text for a passage.

    Attributes:
        text: The text.
        head: Heading of the table at the end of the text; empty if it does not end with a table.
        repeated: Number of characters at the beginning that repeat the heading of a table.
    """

    text: str
    head: str = ""
    repeated: int = 0


def chunks(lines: Iterable[str], name: str, *, markdown: bool, titled: bool = False) -> Iterator[Chunk]:
    """Cut a document into passages along its structure.

    Args:
        lines: Lines of the text, with line ends.
        name: Title of passages before the first heading.
        markdown: True to recognise headings and code fences.
        titled: True if `name` is the document's own title, which also stands before its headings unless the first one
            repeats it.

    Returns:
        Chunks in the order of the text.
    """
    section = _Section([Block(0, name)])
    fresh = True
    for block in _blocks(map(without_controls, lines), markdown=markdown):
        if block.level:
            yield from section.end(block.level)
            section = _Section([] if fresh and not (titled and is_other(name, block.text)) else section.path, block)
        else:
            yield from section.add(block)
        fresh = False
    yield from section.end(0)


def is_other(title: str, heading: str) -> bool:
    """Return whether neither of two titles holds the other one.

    Args:
        title: Title of a document.
        heading: One of its headings.
    """
    first, second = (" ".join(_LETTERS.findall(text.casefold())) for text in (title, heading))
    return first not in second and second not in first


def _blocks(lines: Iterable[str], *, markdown: bool) -> Iterator[Block]:
    if not markdown:
        return plain_blocks(lines)
    from pyrag.retrieval.documents.formats.markdown import markdown_blocks

    return markdown_blocks(lines)


class _Section:
    """Paragraphs under a heading, which become passages as soon as there are enough of them."""

    def __init__(self, path: list[Block], heading: Block | None = None) -> None:
        self.path = path if heading is None else [*(above for above in path if above.level < heading.level), heading]
        self._title = " > ".join(block.text for block in self.path)
        self._alone = heading is not None  # nothing under it yet
        self._body: list[Piece] = []
        self._source = _Source()

    def add(self, paragraph: Block) -> Iterator[Chunk]:
        self._alone = False
        self._body.append(Piece(paragraph.text, paragraph.head, paragraph.repeated))
        self._source.add(paragraph)
        if sum(units(piece.text) for piece in self._body) >= 2 * MAX_UNITS:
            *done, rest = pack(self._body)  # the next paragraph may join the last piece
            self._body = [rest]
            yield from self._placed(done, self._source)

    def end(self, level: int) -> Iterator[Chunk]:
        """Yield the remaining passages before a heading of this level (0: the end of the document).

        A heading without content becomes a passage.
        """
        yield from self._placed(pack(self._body), self._source)
        last = self.path[-1]
        if self._alone and level <= last.level:
            start, end = last.words[0].start, last.words[-1].end
            yield from (Chunk(self._title, piece.text, start, end) for piece in pack([Piece(last.text)]))

    def _placed(self, pieces: Iterable[Piece], source: _Source) -> Iterator[Chunk]:
        for piece in pieces:
            yield Chunk(self._title, piece.text, *source.take(piece.text[piece.repeated :]))


class _Source:
    """Positions of the words of a section, in order."""

    def __init__(self) -> None:
        self._words: deque[Word] = deque()

    def add(self, block: Block) -> None:
        self._words.extend(block.words)

    def take(self, text: str) -> tuple[int, int]:
        """Return start and end of the next text."""
        remaining = sum(map(len, text.split()))
        first = end = self._words[0].start
        while remaining:
            start, end, length = self._words.popleft()
            if length > remaining:  # cut inside a word
                at = min(start + remaining, end)
                self._words.appendleft(Word(at, end, length - remaining))
                end = at
            remaining -= length
            if remaining < 0:
                break
        return first, end


def pack(paragraphs: Iterable[Piece]) -> list[Piece]:
    """Join or split paragraphs to `MIN_UNITS`-`MAX_UNITS` units. A short rest joins its neighbour if both fit."""
    texts: list[Piece] = []
    pending = Piece("")
    for paragraph in map(_with_short_head, paragraphs):
        candidate = _joined(pending, paragraph)
        if units(candidate.text) > MAX_UNITS and units(pending.text) >= MIN_UNITS:
            texts.append(pending)
            pending, candidate = Piece(""), paragraph
        if units(candidate.text) > MAX_UNITS:
            *done, candidate = _cut_table(pending, paragraph) if paragraph.head else _cut(candidate)
            texts += done
        pending = candidate
    if pending.text and texts and units(pending.text) < MIN_UNITS:
        candidate = _joined(texts[-1], pending)
        if units(candidate.text) <= MAX_UNITS:
            texts.pop()
            pending = candidate
    return [*texts, pending] if pending.text else texts


def _with_short_head(piece: Piece) -> Piece:
    """Return a table as plain text if its heading leaves too little room for rows."""
    if units(piece.head) <= _MAX_HEAD:
        return piece
    return Piece(piece.text[piece.repeated :].lstrip("\n"))


def _joined(before: Piece, after: Piece) -> Piece:
    """Join two texts. If both are parts of the same table, its heading is not repeated."""
    if not before.text:
        return after
    goes_on = after.repeated and before.head == after.head
    text = after.text[after.repeated :].lstrip("\n") if goes_on else after.text
    return Piece(f"{before.text}\n{text}", after.head, before.repeated)


def units(text: str) -> int:
    return len(_UNIT.findall(text))


def sentences(text: str) -> list[str]:
    """Split a text after each sentence. The joined pieces are the text."""
    pieces = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        head = text[max(start, end.start() - 12) : end.start() + 1]
        goes_on = text[end.end() : end.end() + 1].islower() or _ABBREVIATION.search(head)
        if "\n" in end[0] or end[0][0] in "。！？" or not goes_on:
            pieces.append(text[start : end.end()])
            start = end.end()
    return [*pieces, text[start:]] if start < len(text) else pieces


def _cut(piece: Piece) -> list[Piece]:
    """Split a text of more than `MAX_UNITS` units into pieces of similar size, at ends of sentences if possible."""
    total = units(piece.text)
    target = total / -(-total // _AIM)
    texts: list[str] = []
    size = 0
    for sentence in (part for text in sentences(piece.text) for part in _short_enough(text, MAX_UNITS)):
        more = units(sentence)
        if texts and size < target and size + more <= MAX_UNITS:
            texts[-1] += sentence
            size += more
        else:
            texts.append(sentence)
            size = more
    first, *others = [text.strip() for text in texts]
    return [Piece(first, repeated=piece.repeated), *map(Piece, others)]


def _cut_table(before: Piece, table: Piece) -> list[Piece]:
    """Split a table between its rows. Each piece begins with the heading."""
    head = table.head
    room = MAX_UNITS - units(head)
    body = table.text.removeprefix(head).strip("\n").split("\n")
    rows = [part.strip() for row in body for part in _row_parts(row, room)]
    pieces: list[Piece] = []
    current = _joined(before, Piece(head, head, table.repeated))
    if units(current.text) + units(rows[0]) > MAX_UNITS:
        pieces.append(before)
        current = Piece(head, head, table.repeated)
    for row in rows:
        if units(current.text) + units(row) > MAX_UNITS:
            pieces.append(current)
            current = Piece(head, head, len(head))
        current = Piece(f"{current.text}\n{row}", head, current.repeated)
    return [*pieces, current]


def _row_parts(row: str, room: int) -> Iterable[str]:
    return _short_enough(row, room) if units(row) > room else (row,)


def _short_enough(sentence: str, maximum: int) -> Iterator[str]:
    """Yield the sentence or, if it is longer than the maximum, equal parts of it, split between words."""
    starts = [unit.start() for unit in _UNIT.finditer(sentence)]
    parts = -(-len(starts) // maximum) or 1
    cuts = starts[:: -(-len(starts) // parts) or 1][1:]
    for start, stop in zip([0, *cuts], [*cuts, len(sentence)], strict=True):
        yield sentence[start:stop]
