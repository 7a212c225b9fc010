"""Presentations of OpenDocument (`.odp`) as Markdown, by the standard library.

`xberg` loses the text of shapes such as text boxes, and adds the texts of the slide master.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pyrag.errors import DataError
from pyrag.retrieval.documents.opened_document import check_package

_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_SLIDES = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_COMMENT = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}annotation"
_BROKEN = (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, zlib.error, ET.ParseError)
_DROPPED = {f"{_SLIDES}notes": "speaker notes", f"{_DRAW}object": "charts and other objects"}
_REPEATED = f"{_TABLE}number-columns-repeated"
_TIMES = re.compile(r"[1-9]")  # a limit, so that a small file does not grow
_SPACES = {f"{_TEXT}s": " ", f"{_TEXT}tab": " ", f"{_TEXT}line-break": " "}


def odp_markdown(data: bytes, name: str, remarks: list[str]) -> str:
    """Return a presentation as Markdown, with a heading for each slide.

    Args:
        data: Content of the document.
        name: Name of the file in messages.
        remarks: List to which a remark on omitted parts is added.

    Raises:
        DataError: The document is broken, or needs a password.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_package(archive, len(data), name)
            if "content.xml" not in archive.NameToInfo:
                raise DataError(f"{name} is not a presentation: save it again as .odp")
            if b"manifest:encryption-data" in archive.read("META-INF/manifest.xml"):
                raise DataError(f"{name} needs a password: save it without one")
            root = ET.fromstring(archive.read("content.xml"))  # noqa: S314 (expat limits the expansion of entities)
    except RecursionError:
        raise
    except _BROKEN as error:
        raise DataError(f"{name} cannot be read as a presentation ({error}): save it again as .odp") from error
    dropped: set[str] = set()
    lines = [line for number, page in enumerate(root.iter(f"{_DRAW}page"), 1) for line in _slide(page, number, dropped)]
    if dropped:
        remarks.append(f"left out: {', '.join(sorted(dropped))}")
    return "\n\n".join(lines)


def _slide(page: ET.Element, number: int, dropped: set[str]) -> Iterator[str]:
    titles = dict.fromkeys(frame for frame in page if frame.get(f"{_SLIDES}class") == "title")
    title = " ".join(filter(None, (_inner_text(paragraph) for frame in titles for paragraph in _paragraphs(frame))))
    if page.find(f".//{_COMMENT}") is not None:
        dropped.add("comments")
    yield f"## {title or f'Slide {number}'}"
    shown = set(titles)
    for element in page:
        if element not in shown:
            yield from _blocks(element, dropped)


def _blocks(element: ET.Element, dropped: set[str]) -> Iterator[str]:
    """Yield the paragraphs, lists and tables of a part of a slide."""
    if words := _DROPPED.get(element.tag):
        has_text = element.tag == f"{_DRAW}object" or any(map(_inner_text, _paragraphs(element)))
        dropped.update([words] if has_text else [])
    elif element.tag in (f"{_TEXT}p", f"{_TEXT}h"):
        if text := _inner_text(element):
            yield text
    elif element.tag == f"{_TEXT}list":
        yield "\n".join(_items(element, 0))
    elif element.tag == f"{_TABLE}table":
        yield _table(element)
    else:
        for child in element:
            yield from _blocks(child, dropped)


def _items(element: ET.Element, level: int) -> Iterator[str]:
    for item in element:
        for child in item:
            if child.tag == f"{_TEXT}list":
                yield from _items(child, level + 1)
            elif text := _inner_text(child):
                yield f"{'  ' * level}- {text}"


def _cells(row: ET.Element) -> Iterator[str]:
    """Yield the cells of a row, each as often as it is repeated."""
    for cell in row:
        text = " ".join(filter(None, map(_inner_text, _paragraphs(cell)))).replace("|", "\\|")
        times = cell.get(_REPEATED, "1")
        yield from [text] * (int(times) if _TIMES.fullmatch(times) else 1)


def _table(element: ET.Element) -> str:
    rows = [list(_cells(row)) for row in element.iter(f"{_TABLE}table-row")]
    width = max(map(len, rows), default=0)
    rows[:1] = [[*row, *[""] * (width - len(row))] for row in rows[:1]]
    first, *others = [f"| {' | '.join(row)} |" for row in rows] or [""]
    return "\n".join((first, "|" + " --- |" * width, *others))


def _paragraphs(element: ET.Element) -> Iterator[ET.Element]:
    return (child for child in element.iter() if child.tag in (f"{_TEXT}p", f"{_TEXT}h"))


def _inner_text(element: ET.Element) -> str:
    """Return the text of a paragraph on one line, without comments."""
    return " ".join("".join(_texts(element)).split())


def _texts(element: ET.Element) -> Iterator[str]:
    if element.tag == _COMMENT:
        return
    yield _SPACES.get(element.tag, element.text or "")
    for child in element:
        yield from _texts(child)
        yield child.tail or ""
