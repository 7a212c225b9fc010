"""Blocks of Markdown (CommonMark with tables), parsed by `markdown-it-py`.

Only the structure of blocks is used. The text of a block is the text of its lines, with entities decoded outside code,
so every character keeps its position. A long text is parsed in parts that end between two blocks.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from pyrag.retrieval.documents.blocks import PARAGRAPH, Block, SourceLine, paragraph, table, words_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PART = 1 << 20  # characters that are parsed at once
_MAX_BLOCK = 1 << 22  # characters of one block; a longer one is cut
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_VERBATIM = ("fence", "code_block", "html_block")


def markdown_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Yield headings and paragraphs of a Markdown text, in order.

    Args:
        lines: Lines of the text, with line ends.
    """
    part: list[str] = []
    size = at = 0
    limit = _PART
    for line in chain(lines, [""]):
        part.append(line)
        size += len(line)
        if line and size < limit:
            continue
        text = "".join(part)
        rest = yield from _parsed(text, at, is_last=not line)
        at += len(text) - len(rest)
        part, size = [rest], len(rest)
        limit = _PART + 2 * size  # so that a long block is not parsed too often


def _parsed(text: str, at: int, *, is_last: bool) -> Generator[Block, None, str]:
    """Yield the blocks in a part of a text; return the text of the last block, which may continue."""
    lines = [SourceLine(match[0], at + match.start(), encoded=True) for match in _LINE.finditer(text) if match[0]]
    tokens = _parser().parse(text)
    top = [token for token in tokens if token.level == 0 and token.map]
    stop = len(lines)
    if not is_last and len(text) < _MAX_BLOCK and top:
        stop = top[-1].map[0] if len(top) > 1 else 0  # type: ignore[index]
    source_lines = _marked(lines, tokens)
    tables = {token.map[0]: token.map[1] for token in tokens if token.type == "table_open" and token.map}
    yield from _blocks(source_lines[:stop], tables, _headings(tokens))
    return "".join(line.text for line in lines[stop:])


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.disable("inline")
    return parser


def _marked(lines: Sequence[SourceLine], tokens: Iterable[Token]) -> list[SourceLine]:
    """Return the lines, in which lines of code and comments are marked as separate and free of entities."""
    source_lines = list(lines)
    for token in tokens:
        if token.map and token.type in _VERBATIM:
            for number in range(token.map[0], min(token.map[1], len(source_lines))):
                source_lines[number] = source_lines[number]._replace(own=True, encoded=token.type == "html_block")
    return source_lines


def _headings(tokens: Sequence[Token]) -> dict[int, tuple[int, int, str]]:
    """Return last line, level and text of each heading by its first line. Headings in quotes and lists are ignored."""
    headings = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = SourceLine(inline.content, 0, encoded=True).decoded.replace("**", "").replace("`", "")
            if title.strip():
                headings[token.map[0]] = (token.map[1], int(token.tag[1]), " ".join(title.split()))
    return headings


def _blocks(
    lines: Sequence[SourceLine], tables: dict[int, int], headings: dict[int, tuple[int, int, str]]
) -> Iterator[Block]:
    paragraph_lines: list[SourceLine] = []
    number = size = 0
    while number < len(lines):
        line = lines[number]
        stop = number + 1
        if number in headings or number in tables or not line.text.strip() or size > PARAGRAPH:
            yield from paragraph(paragraph_lines)
            paragraph_lines, size = [], 0
        if number in headings:
            stop, level, title = headings[number]
            yield Block(level, title, words_of(lines[number:stop]))
        elif number in tables:
            stop = tables[number]
            yield from table(lines[number:stop])
        else:
            paragraph_lines.append(line)
            size += len(line.text)
        number = stop
    yield from paragraph(paragraph_lines)
