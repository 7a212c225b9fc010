"""Word documents as Markdown: headings, paragraphs, numbers, notes, boxes and tables.

This uses only the standard library, since no tested library preserves numbers, ticks, merged cells and moved text
(`docs/notes/document-readers.md`). Headings follow the outline level in any language. Page headers and footers,
comments, and tracked deletions are omitted with a remark. Pictures are omitted without a remark.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO
from xml.etree import ElementTree as ET

from pyrag.errors import DataError
from pyrag.retrieval.documents.formats.headings import headed
from pyrag.retrieval.documents.formats.word_styles import WORD, Numbering, Styles, value_of
from pyrag.retrieval.documents.opened_document import Unpacked, check_package

_BODY = "word/document.xml"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_CHECKED = {True: "☒", False: "☐"}
_PIECES = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_SYMBOLS = {
    **dict.fromkeys((0x6F, 0x70, 0x71, 0x72, 0xA1, 0xA3, 0xA8), "☐"),
    **dict.fromkeys((0x78, 0xFD, 0x54, 0x53), "☒"),
    **dict.fromkeys((0xFE, 0x52), "☑"),
    **dict.fromkeys((0xFC, 0x50), "✓"),
    **dict.fromkeys((0xFB, 0x4F), "✗"),
    0xE0: "→",
    0xDF: "←",
    0xB7: "•",
}
_MARKS = ("#", "|", ">", "<", "```", "~~~", "---", "===", "+++")
_MAX_DEPTH = 60


def docx_markdown(data: bytes, name: str, remarks: list[str]) -> Iterator[str]:
    """Yield the lines of a Word document as Markdown.

    Args:
        data: Content of the file.
        name: Name of the file in messages.
        remarks: List to which remarks on omitted parts are appended.

    Raises:
        DataError: The document is broken, or not a Word document.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_package(archive, len(data), name)
            yield from _WordDocument(archive, name, remarks).lines()
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError) as error:
        if isinstance(error, RecursionError):
            raise DataError(f"{name}: nested too deeply: flatten it") from None
        raise DataError(f"{name} cannot be read as a Word document ({error}): save it again as .docx") from error
    except ET.ParseError as error:
        raise DataError(f"{name} is a broken Word document ({error}): save it again as .docx") from error


class _WordDocument:
    """Parts of a document. `lines` reads its body, block by block."""

    def __init__(self, archive: zipfile.ZipFile, name: str, remarks: list[str]) -> None:
        self._archive = archive
        self._name = name
        self._remarks = remarks
        self._names = set(archive.namelist())
        self._styles = Styles(self._part("word/styles.xml"))
        self._numbering = Numbering(self._part("word/numbering.xml"))
        self._notes = {kind: self._notes_by_id(f"word/{kind}s.xml") for kind in ("footnote", "endnote")}
        self._noted = 0  # notes so far
        self._dropped: set[str] = set()

    def lines(self) -> Iterator[str]:
        depth = 0
        with self._opened(_BODY) as stream:
            # expat limits the expansion of entities and fetches none.
            for event, element in ET.iterparse(stream, events=("start", "end")):  # noqa: S314
                depth += 1 if event == "start" else -1
                if event == "end" and depth == 2:  # a child of the body
                    yield from self._block(element)
                    element.clear()
        self._note_parts()

    def _opened(self, part: str) -> IO[bytes]:
        packed_size = self._archive.getinfo(part).compress_size
        return io.BufferedReader(Unpacked(self._archive.open(part), self._name, lambda: packed_size))

    def _part(self, part: str) -> ET.Element | None:
        if part not in self._names:
            return None
        with self._opened(part) as stream:
            return ET.parse(stream).getroot()  # noqa: S314

    def _notes_by_id(self, part: str) -> dict[str, ET.Element]:
        root = self._part(part)
        return {} if root is None else {note.get(f"{WORD}id", ""): note for note in root}

    def _note_parts(self) -> None:
        """Add a remark on omitted parts, if they contain text."""
        kinds = (("header", "page headers"), ("footer", "page footers"), ("comments.xml", "comments"))
        for kind, words in kinds:
            parts = [name for name in self._names if name.startswith(f"word/{kind}") and name.endswith(".xml")]
            roots = map(self._part, sorted(parts)[:20])
            texts = (text.text or "" for root in roots if root is not None for text in root.iter(f"{WORD}t"))
            if any(map(str.strip, texts)):
                self._dropped.add(words)
        if self._dropped:
            self._remarks.append(f"left out: {', '.join(sorted(self._dropped))}")

    def _block(self, element: ET.Element, depth: int = 0) -> Iterator[str]:
        if depth > _MAX_DEPTH:
            raise RecursionError
        if element.tag == f"{WORD}p":
            yield from self._paragraph(element, depth)
        elif element.tag == f"{WORD}tbl":
            yield from self._table(element, depth)
        elif element.tag in (f"{WORD}moveFrom", f"{WORD}del"):
            self._dropped.add("text that was deleted or moved with changes tracked")
        else:
            for child in _children(element):
                yield from self._block(child, depth + 1)

    def _paragraph(self, element: ET.Element, depth: int) -> Iterator[str]:
        boxes: list[ET.Element] = []
        notes: list[str] = []
        text = self._text(element, boxes, notes, depth)
        level = self._styles.level(element)
        number = self._numbering.label(self._styles.numbering(element)) if text.strip() or level else ""
        lines = [" ".join(line.split()) for line in text.split("\n")]
        lines = [line for line in lines if line]
        if lines and level:
            yield f"{'#' * min(level, 6)} {number}{' '.join(lines)}\n\n"
        elif lines:
            lines[0] = number + lines[0] if number else _escaped(lines[0])
            yield "  \n".join([lines[0], *map(_escaped, lines[1:])]) + "\n\n"
        yield from (f"{note}\n\n" for note in notes)
        for box in boxes:
            for child in _children(box):
                yield from self._block(child, depth + 1)

    def _text(self, element: ET.Element, boxes: list[ET.Element], notes: list[str], depth: int = 0) -> str:
        if depth > _MAX_DEPTH:
            raise RecursionError
        return "".join(self._piece(child, boxes, notes, depth + 1) for child in _children(element))

    def _piece(self, element: ET.Element, boxes: list[ET.Element], notes: list[str], depth: int) -> str:
        tag = element.tag.removeprefix(WORD)
        if tag == "t":
            return element.text or ""
        if tag in _PIECES:
            return _PIECES[tag]
        if tag in ("footnoteReference", "endnoteReference"):
            return self._note(tag.removesuffix("Reference"), value_of(element, "id"), boxes, notes, depth)
        if tag in ("del", "moveFrom"):
            self._dropped.add("text that was deleted or moved with changes tracked")
            return ""
        if tag == "txbxContent":
            boxes.append(element)
            return ""
        if tag in ("sym", "ffData"):
            return _symbol(element) if tag == "sym" else _form_value(element)
        if tag.startswith(_MATH):
            return f" {_formula(element)} " if tag == f"{_MATH}oMath" else self._text(element, boxes, notes, depth)
        return "" if tag in ("pPr", "rPr", "sdtPr", "instrText", "rt") else self._text(element, boxes, notes, depth)

    def _note(self, kind: str, key: str, boxes: list[ET.Element], notes: list[str], depth: int) -> str:
        note = self._notes[kind].get(key)
        if note is None:
            return ""
        text = " ".join(self._text(note, boxes, notes, depth).split())
        self._noted += 1
        notes.append(f"[{self._noted}] {text}")
        return f" [{self._noted}]"

    def _table(self, table: ET.Element, depth: int) -> Iterator[str]:
        rows: list[list[str]] = []
        for element in _rows_or_cells(table, "tr"):
            cells = self._cells(element, rows[-1] if rows else [], "; " if rows else " ", depth)
            rows += [cells] if any(cells) else []
        titles, rows = headed(rows)
        yield from (f"{_escaped(title)}\n\n" for title in titles)
        width = max(map(len, rows), default=0)
        for number, row in enumerate(rows):
            yield f"| {' | '.join([*row, *[''] * (width - len(row))])} |\n"
            if number == 0 and len(rows) > 1:
                yield f"|{' --- |' * width}\n"
        yield "\n"

    def _cells(self, row: ET.Element, above: Sequence[str], between: str, depth: int) -> list[str]:
        """Return the cells of a row by column. A cell that is merged with the cell above has the same text."""
        before = row.find(f"{WORD}trPr/{WORD}gridBefore")
        cells = [""] * _number(before, 0)
        for cell in _rows_or_cells(row, "tc"):
            merge = cell.find(f"{WORD}tcPr/{WORD}vMerge")
            goes_on = merge is not None and value_of(merge) in ("", "continue")
            place = len(cells)
            text = above[place] if goes_on and place < len(above) else self._cell(cell, between, depth)
            span = _number(cell.find(f"{WORD}tcPr/{WORD}gridSpan"), 1)
            cells += [text, *[""] * (min(span, 1000) - 1)]
        return cells

    def _cell(self, cell: ET.Element, between: str, depth: int) -> str:
        """Return the text of a cell, with nested tables, on one line."""
        lines = "".join(line for child in _children(cell) for line in self._block(child, depth + 1)).split("\n")
        lines = [line.strip().strip("|").strip() for line in lines if set(line) - set("|- ")]
        return between.join(line.replace("\\|", "|").replace(" | ", ", ").replace("|", "\\|") for line in lines if line)


def _children(element: ET.Element) -> Iterator[ET.Element]:
    """Yield the child elements; of alternatives, only the first one."""
    for child in element:
        if child.tag == f"{_MC}AlternateContent":
            alternative = child.find(f"{_MC}Choice")
            alternative = child.find(f"{_MC}Fallback") if alternative is None else alternative
            if alternative is not None:
                yield from _children(alternative)
        else:
            yield child


def _rows_or_cells(element: ET.Element, tag: str) -> Iterator[ET.Element]:
    """Yield rows or cells, including those in content controls, but not those in nested tables."""
    for child in _children(element):
        if child.tag == f"{WORD}{tag}":
            yield child
        elif child.tag in (f"{WORD}sdt", f"{WORD}sdtContent", f"{WORD}ins", f"{WORD}customXml"):
            yield from _rows_or_cells(child, tag)


def _number(element: ET.Element | None, default: int) -> int:
    value = "" if element is None else value_of(element)
    return min(int(value), 1000) if value.isdecimal() else default


def _symbol(element: ET.Element) -> str:
    try:
        code = int(element.get(f"{WORD}char", ""), 16)
    except ValueError:
        return ""
    is_dingbat = element.get(f"{WORD}font", "").lower().startswith(("wingdings", "webdings", "symbol", "zapf"))
    return _SYMBOLS.get(code & 0xFF, "▪") if is_dingbat or 0xF000 <= code <= 0xF0FF else chr(code)


def _form_value(element: ET.Element) -> str:
    """Return the state of a check box, or the selected entry of a list; empty for other fields."""
    box = element.find(f"{WORD}checkBox")
    if box is not None:
        state = box.find(f"{WORD}checked")
        state = box.find(f"{WORD}default") if state is None else state
        return _CHECKED[state is not None and value_of(state) not in ("0", "false", "off")]
    entries = element.findall(f"{WORD}ddList/{WORD}listEntry")
    place = _number(element.find(f"{WORD}ddList/{WORD}result"), 0)
    return value_of(entries[place]) if place < len(entries) else ""


def _formula(element: ET.Element) -> str:
    """Return a formula as one line."""
    tag = element.tag.removeprefix(_MATH)
    if tag == "t":
        return element.text or ""
    parts = {child.tag.removeprefix(_MATH): _formula(child) for child in element}
    if tag == "f":
        return f"({parts.get('num', '')})/({parts.get('den', '')})"
    if tag in ("sSup", "sSub"):
        mark, name = ("^", "sup") if tag == "sSup" else ("_", "sub")
        return f"{parts.get('e', '')}{mark}{parts.get(name, '')}"
    if tag == "rad":
        return f"{parts.get('deg', '')}√({parts.get('e', '')})"
    return "".join(map(_formula, element))


def _escaped(line: str) -> str:
    """Escape a line of text that Markdown would read as markup."""
    return f"\\{line}" if line.startswith(_MARKS) else line
