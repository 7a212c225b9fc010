"""Jupyter notebooks as Markdown, read by the standard library: text, code, and what the code printed.

Of an output in several forms, Markdown, a table of HTML or plain text is used. Images, traces of errors and outputs
without a text are counted. Notebooks of versions 3 and 4 are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pyrag.errors import DataError
from pyrag.retrieval.documents.formats.html import html_markdown
from pyrag.retrieval.documents.formats.properties import Properties, properties_of
from pyrag.retrieval.documents.opened_document import Opened

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f]")  # colours and other controls
_REWRITTEN = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)  # by a carriage return, as progress bars do
_FENCES = re.compile(r"^[^\S\n]*(`{3,})", re.MULTILINE)
_OBJECT = re.compile(r"\s*<.*>\s*", re.DOTALL)  # such as `<Figure size 640x480>`, which says nothing about an image
_OLD_FORMS = {"text": "text/plain", "html": "text/html", "latex": "text/latex", "json": "application/json"}
_IMAGES = ("png", "jpeg", "svg", "pdf")  # of version 3


def notebook_markdown(file: Opened) -> tuple[str, Properties]:
    """Return a notebook as Markdown with its properties, and add remarks on omitted parts to the file.

    Raises:
        DataError: The file is not a notebook.
    """
    name = file.document.name
    try:
        book = json.loads(file.whole())
        cells = [cell for sheet in book.get("worksheets", [book]) for cell in sheet["cells"]]
        notebook = _Notebook(book, name)
        text = "\n\n".join(filter(None, (part for cell in cells for part in notebook.parts(cell))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{name} cannot be read as a notebook ({error}): open it and save it again") from error
    file.lacks_reader |= notebook.lacks_reader
    omissions = [f"{words} ({count})" for words, count in sorted(notebook.omissions.items()) if count]
    if omissions:
        file.remarks.append(f"left out: {', '.join(omissions)}")
    return text, notebook.properties


class _Notebook:
    """Cells of a notebook, and what is left out of them."""

    def __init__(self, book: Mapping[str, Any], name: str) -> None:
        self.omissions: Counter[str] = Counter()
        self.lacks_reader = False
        self._name = name
        about = book.get("metadata", {})
        kernel = about.get("language_info", {}).get("name") or about.get("kernelspec", {}).get("language") or ""
        self._language = re.sub(r"\W", "", str(kernel))
        people = _list(about, "authors")
        authors = [person.get("name", "") if isinstance(person, Mapping) else person for person in people]
        pairs = [(name, about.get(name)) for name in ("title", "author", "date", "keywords", "description")]
        values = [(name, value) for name, value in pairs if isinstance(value, str)]
        self.properties = properties_of([*values, *(("author", author) for author in authors)])

    def parts(self, cell: Mapping[str, Any]) -> Iterator[str]:
        """Yield the text of a cell, and the texts of its outputs."""
        kind, source = cell["cell_type"], _joined(cell.get("source", cell.get("input", "")))
        if kind == "code":
            yield _fenced(source, self._language)
            for output in _list(cell, "outputs"):
                yield self._output(output)
            return
        self.omissions["images"] += len(cell.get("attachments", ()))
        yield f"{'#' * _level(cell)} {source}" if kind == "heading" else source

    def _output(self, output: Mapping[str, Any]) -> str:
        kind = output.get("output_type")
        if kind == "stream":
            return _fenced(_plain(_joined(output.get("text", ""))))
        if kind in ("error", "pyerr"):
            self.omissions["traces of errors"] += bool(output.get("traceback"))
            return _fenced(_plain(f"{output.get('ename', '')}: {output.get('evalue', '')}"))
        forms = output.get("data") or {_OLD_FORMS.get(name, name): value for name, value in output.items()}
        return self._best_form(forms)

    def _best_form(self, forms: Mapping[str, Any]) -> str:
        """Return the output in one of its forms; empty if it has no text."""
        has_image = any(form.startswith("image/") or form in _IMAGES for form in forms)
        self.omissions["images"] += has_image
        if markdown := _joined(forms.get("text/markdown", "")):
            return markdown
        page = _joined(forms.get("text/html", ""))
        if "<table" in page and (table := self._page(page)):
            return table
        plain = _plain(_joined(forms.get("text/plain", "")))
        if plain.strip() and not (has_image and _OBJECT.fullmatch(plain)):
            return _fenced(plain)
        text = self._page(page) or _joined(forms.get("text/latex", "")) or _data(forms.get("application/json"))
        self.omissions["outputs without a text"] += not text and not has_image
        return text

    def _page(self, page: str) -> str:
        """Return a page as Markdown; empty if the extra for pages is missing."""
        try:
            return html_markdown(b'<meta charset="utf-8">' + page.encode("utf-8", "replace"), self._name).text.strip()
        except DataError:
            self.lacks_reader = True
            return ""


def _level(cell: Mapping[str, Any]) -> int:
    level = cell.get("level", 1)
    return level if level in range(1, 7) else 6


def _list(holder: Mapping[str, Any], name: str) -> list[Any]:
    value = holder.get(name)
    return value if isinstance(value, list) else []


def _joined(text: Any) -> str:
    """Return a text that may be stored as a list of lines."""
    joined = "".join(map(str, text)) if isinstance(text, list) else str(text or "")
    return joined.encode("utf-8", "replace").decode()


def _plain(text: str) -> str:
    return _ESCAPES.sub("", _REWRITTEN.sub("", text.replace("\r\n", "\n"))).rstrip()


def _data(value: Any) -> str:
    return "" if value is None else _fenced(json.dumps(value, ensure_ascii=False))


def _fenced(text: str, language: str = "") -> str:
    """Return a block of code, whose fence is longer than each fence in it; empty without a text."""
    fence = "`" * max([3, *(len(mark) + 1 for mark in _FENCES.findall(text))])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}" if text.strip() else ""
