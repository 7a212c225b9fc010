"""Passages from running text: plain text, Markdown with front matter, and the output of converters for other formats.

`start` and `end` of a passage are positions in the text: in the decoded file without a byte order mark, or in the
converter's output. The source of a passage from a PDF file names the page on which it begins.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyrag.errors import DataError
from pyrag.retrieval.documents.cards.bibliography import bibliography_cards
from pyrag.retrieval.documents.cards.calendars import calendar_cards
from pyrag.retrieval.documents.cards.card import Card, length
from pyrag.retrieval.documents.cards.contacts import contact_cards
from pyrag.retrieval.documents.chunking import Chunk, chunks
from pyrag.retrieval.documents.controls import without_controls
from pyrag.retrieval.documents.formats.front_matter import split_front_matter
from pyrag.retrieval.documents.formats.html import html_markdown
from pyrag.retrieval.documents.formats.mail import Mail
from pyrag.retrieval.documents.formats.notebook import notebook_markdown
from pyrag.retrieval.documents.formats.office import check_password
from pyrag.retrieval.documents.formats.open_slides import odp_markdown
from pyrag.retrieval.documents.formats.pdf import opened_pdf
from pyrag.retrieval.documents.formats.properties import Properties, packed_properties
from pyrag.retrieval.documents.formats.word import docx_markdown
from pyrag.retrieval.documents.json_records import not_utf8, record_metadata
from pyrag.retrieval.documents.model import ZERO_BYTE, Document, Placed, at, digest
from pyrag.retrieval.documents.opened_document import Opened
from pyrag.trace.model import Passage

_PIECE = 1 << 20  # maximum bytes of a line that are read at once


def plain_text(file: Opened) -> Iterator[Placed]:
    yield from _placed(file.document, chunks(_lines(file), file.document.title, markdown=False))


def markdown(file: Opened) -> Iterator[Placed]:
    front = split_front_matter(_lines(file))
    file.remarks += dict.fromkeys(front.remarks)
    fields, length = front.fields, front.length
    title = next((str(value).strip() for name, value in fields.items() if name.lower() == "title" and value), "")
    others = {name: value for name, value in fields.items() if name.lower() != "title"}
    for item in _titled(file, front.lines, Properties(title, others)):
        passage = item.passage
        start, end = ((passage.start or 0) + length, (passage.end or 0) + length)
        yield replace(item, passage=replace(passage, start=start, end=end))


def html(file: Opened) -> Iterator[Placed]:
    page = html_markdown(file.whole(), file.document.name)
    file.remarks += page.remarks
    yield from running_text(file, page.text, page.properties)


def running_text(file: Opened, text: str, properties: Properties = Properties()) -> Iterator[Placed]:  # noqa: B008
    """Yield the passages of a file that was converted to Markdown.

    Args:
        file: The open document.
        text: Output of the converter.
        properties: Properties of the document.
    """
    yield from _titled(file, without_controls(text).splitlines(keepends=True), properties)


def mail(file: Opened, message: Mail) -> Iterator[Placed]:
    """Yield the passages of the texts of an e-mail, which begin with its headers.

    Args:
        file: The open document.
        message: The e-mail.
    """
    title = message.headers.get("Subject", "") or file.document.title
    head = "".join(f"{name}: {text}  \n" for name, text in message.headers.items())
    fields = {"from": message.headers.get("From"), "to": message.headers.get("To"), "date": message.date}
    texts, is_html = [head], any(is_html for _, is_html in message.texts)
    for data, is_page in message.texts:
        if is_page:
            page = html_markdown(b'<meta charset="utf-8">' + data, file.document.name)
            file.remarks += page.remarks
            text = page.text
        else:
            text = without_controls(data.decode("utf-8", "replace").replace("\0", ""))
        texts.append(text)
    lines = "\n\n".join(texts).splitlines(keepends=True)
    metadata = record_metadata(file, {name: value for name, value in fields.items() if value})
    yield from _placed(file.document, chunks(lines, title, markdown=is_html), metadata=metadata)


def calendar(file: Opened) -> Iterator[Placed]:
    yield from _cards(file, calendar_cards(_text_bytes(file), file.remarks))


def contacts(file: Opened) -> Iterator[Placed]:
    yield from _cards(file, contact_cards(_text_bytes(file), file.remarks))


def bibliography(file: Opened) -> Iterator[Placed]:
    yield from _cards(file, bibliography_cards("".join(_lines(file)), file.document.name))


def _text_bytes(file: Opened) -> bytes:
    """Return the content of a file of texts, which may be in several encodings."""
    data = file.whole()
    if b"\0" in data:
        raise DataError(f"{file.document.name}: {ZERO_BYTE}{file.encoding_cure}")
    return data


def _cards(file: Opened, cards: Iterable[Card]) -> Iterator[Placed]:
    """Yield the passages of cards: for each of them one with its fields, and more for long running texts."""
    at, seen = 0, dict[str, int]()
    for card in cards:
        pieces = card.chunks(file.document.title, at)
        yield from _placed(file.document, pieces, metadata=record_metadata(file, card.metadata), seen=seen)
        at += length(card)


def docx(file: Opened) -> Iterator[Placed]:
    data = file.whole()
    check_password(data, file.document.name)
    lines = docx_markdown(data, file.document.name, file.remarks)
    yield from _titled(file, lines, packed_properties(data))


def odp(file: Opened) -> Iterator[Placed]:
    data = file.whole()
    text = odp_markdown(data, file.document.name, file.remarks)
    yield from running_text(file, text, packed_properties(data))


def notebook(file: Opened) -> Iterator[Placed]:
    yield from running_text(file, *notebook_markdown(file))


def pdf(file: Opened) -> Iterator[Placed]:
    starts: list[int] = []
    empty = True
    with opened_pdf(file) as document:
        for item in _titled(file, _page_lines(document.pages(), starts), document.properties, starts):
            empty = False
            yield item
    if empty:
        raise DataError(f"{file.document.name} holds no text, as scanned pages do: make it searchable by OCR")


def _titled(
    file: Opened, lines: Iterable[str], properties: Properties, pages: list[int] | None = None
) -> Iterator[Placed]:
    """Yield the passages of a document with properties. A title that its headings replace becomes metadata."""
    title, is_markdown = properties.title, pages is None
    pieces = chunks(lines, title or file.document.title, markdown=is_markdown, titled=bool(title))
    metadata = record_metadata(file, properties.fields)
    for item in _placed(file.document, pieces, pages, metadata):
        if title and title.casefold() not in item.passage.title.casefold():
            item = replace(item, passage=replace(item.passage, metadata={**metadata, "title": title}))
        yield item


def _placed(
    document: Document,
    pieces: Iterable[Chunk],
    pages: list[int] | None = None,
    metadata: dict[str, Any] | None = None,
    seen: dict[str, int] | None = None,
) -> Iterator[Placed]:
    seen = {} if seen is None else seen
    for chunk in pieces:
        hash_text = digest(chunk.title, chunk.text)
        seen[hash_text] = nth = seen.get(hash_text, 0) + 1
        key = f"{document.key}#{hash_text}" + (f"-{nth}" if nth > 1 else "")
        page = f"#page={bisect_right(pages, chunk.start)}" if pages else ""
        source = document.name + page
        passage = Passage(
            key, chunk.title, chunk.text, source=source, start=chunk.start, end=chunk.end, metadata=metadata or {}
        )
        yield Placed(passage, document, 0, own_id=False)


def _lines(file: Opened) -> Iterator[str]:
    """Yield the lines of a file. Very long lines are split, so that they do not fill the memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number = 1
    while line := file.stream.readline(_PIECE):
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        try:
            yield decoder.decode(line)
        except UnicodeDecodeError as error:
            raise not_utf8(at(file.document, number), line, error, file.encoding_cure) from error
        if b"\0" in line:
            raise DataError(f"{at(file.document, number)}: {ZERO_BYTE}{file.encoding_cure}")
        number += line.endswith(b"\n")
    if decoder.getstate()[0]:
        raise DataError(f"{at(file.document, number)}: not UTF-8 (cut off in a character): save the file as UTF-8")


def _page_lines(pages: Iterable[str], starts: list[int]) -> Iterator[str]:
    """Yield the lines of all pages, so that sentences may cross page breaks; append each page's start to `starts`."""
    length = 0
    for page in pages:
        starts.append(length)
        is_complete = page.rstrip()[-1:] in '.!?…。！？"”’)|'
        for line in (page.rstrip() + ("\n\n" if is_complete else "\n")).splitlines(keepends=True):
            length += len(line)
            yield line
