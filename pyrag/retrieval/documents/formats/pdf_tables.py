"""Ruled tables of PDF pages. The converter `xberg` recognises them, and they replace their words in the text of a page.

A table replaces the same characters in the same order, so nothing is lost or doubled. Tables whose words are in
another order, and tables without lines, stay lines of text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from pyrag.retrieval.documents.formats.headings import with_headings
from pyrag.retrieval.documents.formats.office import converted

_MARGIN = 100  # characters of page headers and footers, between two parts of a table
_SIGN = re.compile(r"\S")

Rows = list[list[str]]


def ruled_tables(data: bytes) -> Mapping[int, list[Rows]] | None:
    """Return the tables of a PDF file by the number of their page, from 1; None if no converter can read them."""
    if find_spec("xberg") is None:
        return None
    import xberg

    options = xberg.PdfConfig(extract_tables=True, extract_metadata=False, extract_annotations=False)
    try:
        results = converted(data, ".pdf", "application/pdf", pdf_options=options, disable_ocr=True).results
    except Exception:  # the library raises classes of its own; the text is read without it
        return None
    tables: dict[int, list[Rows]] = defaultdict(list)
    for table in (table for result in results for table in result.tables):
        rows = [[" ".join(cell.split()) for cell in row] for row in table.cells]
        rows = [row for row in rows if any(row)]
        if len(rows) > 1 and max(map(len, rows)) > 1:
            tables[table.page_number].append(rows)
    return tables


class TablePlacer:
    """Places tables in the texts of the pages of a file, and knows the table that a page ends with."""

    def __init__(self) -> None:
        self._heading: list[str] | None = None
        self.unplaced = 0

    def placed(self, text: str, tables: Sequence[Rows]) -> str:
        """Return the text of the next page with its tables.

        Args:
            text: Text of the page.
            tables: Tables of the page, from top to bottom.
        """
        pieces: list[str] = []
        heading, self._heading = self._heading, None
        signs, places = "".join(text.split()), [sign.start() for sign in _SIGN.finditer(text)]
        read, end = 0, 0  # signs and characters up to the end of the last table
        for rows in tables:
            words = "".join("".join(cell.split()) for row in rows for cell in row)
            start = signs.find(words, read)
            if start < 0:
                self.unplaced += 1
                continue
            above = text[end : places[start]].strip()
            goes_on = heading and not pieces and len(above) <= _MARGIN and len(rows[0]) == len(heading)
            if goes_on and heading and rows[0] != heading:
                rows = [heading, *rows]
            pieces += [above, _markdown(rows)]
            read = start + len(words)
            end = places[read - 1] + 1
            self._heading = rows[0]
        rest = text[end:].lstrip() if pieces else text
        if len(rest.strip()) > _MARGIN:
            self._heading = None
        return "\n\n".join(filter(None, [*pieces, rest]))


def _markdown(rows: Rows) -> str:
    width = max(map(len, rows))
    cells = [[cell.replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in rows]
    first, *others = [f"| {' | '.join(row)} |" for row in cells]
    return with_headings("\n".join([first, f"|{' --- |' * width}", *others]))
