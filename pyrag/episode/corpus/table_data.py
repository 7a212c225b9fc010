"""Tables as data: the rows of Markdown tables in passages, and records that are documents of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.retrieval.catalogue.grouping import file_of
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.trace.model import Passage
from pyrag_helpers.columns import column_marks, column_values, with_dates

MAX_ROWS = 20_000
"""Rows that one call returns."""

_ROWS = re.compile(r"\.(?:csv|tsv)(?:\.\w+)?$", re.IGNORECASE)
_EXCEL = re.compile(r"\.(?:xls[xm]?|xltx)$", re.IGNORECASE)
_RULE = re.compile(r":?-{2,}:?")
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class TableData:
    """Table of the corpus.

    Attributes:
        title: Heading above the table, or name of the file.
        source: File that contains the table.
        rows: Rows as values by column.
        passages: Passages that hold the rows.
    """

    title: str
    source: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)


def is_record(source: str) -> bool:
    """Return whether a source's passages are rows of a CSV or TSV file, each a document of its own."""
    return bool(source) and not file_of(source) and bool(_ROWS.search(source))


def has_table(passage: Passage) -> bool:
    """Return whether a passage is a record of a table, or contains a table."""
    return (is_record(passage.source) and bool(passage.metadata)) or next(iter(_blocks(passage.text)), None) is not None


def of_passages(passages: Iterable[Passage]) -> list[TableData]:
    """Return the tables of a document. Adjacent parts of a table with the same title and heading are joined.

    Args:
        passages: Passages of one document in reading order.
    """
    joined: list[tuple[tuple[str, ...], TableData, list[list[str]], list[str]]] = []
    for passage in passages:
        prose = [line for line in passage.text.splitlines() if "|" not in line]
        for header, rows in _blocks(passage.text):
            last = joined[-1] if joined else None
            if last is not None and last[0] == header and last[1].title == passage.title:
                last[1].passages.append(passage)
                last[2].extend(rows)
            else:
                table = TableData(passage.title, passage.source, passages=[passage])
                joined.append((header, table, list(rows), prose))
    for header, table, cells, prose in joined:
        table.rows.extend(_typed(header, cells, [table.title, *prose], is_excel=bool(_EXCEL.search(table.source))))
    return [table for _, table, _, _ in joined if table.rows]


def of_records(title: str, source: str, records: Sequence[CatalogueDocument], near: Sequence[Passage]) -> TableData:
    """Return the table that records form: a column for each field, plus one for titles that no field holds.

    Args:
        title: Name of the table.
        source: File of the records.
        records: All records.
        near: Passages to cite for the table; the text of the first one shows the order of the columns.
    """
    rows = [
        dict(record.metadata) if record.title in _texts(record) else {"title": record.title, **record.metadata}
        for record in records
    ]
    if all(str(row.get("title", "")).endswith(tuple(map(str, _texts_of(row)))) for row in rows):
        rows = [{name: value for name, value in row.items() if name != "title"} for row in rows]
    text = near[0].text if near else ""
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=lambda name: text.find(f"{name}: "))
    columns = {name: with_dates([row.get(name) for row in rows]) for name in names}
    ordered = [{name: columns[name][place] for name in names} for place in range(len(rows))]
    return TableData(title, source, ordered, list(near))


def _texts(record: CatalogueDocument) -> list[Any]:
    return list(record.metadata.values())


def _texts_of(row: dict[str, Any]) -> list[Any]:
    values = [value for name, value in row.items() if name != "title" and isinstance(value, str) and value]
    return values or ["\0"]


def _blocks(text: str) -> Iterable[tuple[tuple[str, ...], list[list[str]]]]:
    """Yield heading and rows of each Markdown table in a text: lines with bars, the second of which is a rule."""
    lines = [_cells(line) if "|" in line else [] for line in text.splitlines()]
    at = 0
    while at + 1 < len(lines):
        header, rule = lines[at], lines[at + 1]
        if len(header) < 2 or not rule or not all(_RULE.fullmatch(cell) for cell in rule):
            at += 1
            continue
        end = at + 2
        while end < len(lines) and len(lines[end]) > 1:
            end += 1
        width = len(header)
        rows = [(row + [""] * width)[:width] for row in lines[at + 2 : end] if any(row)]
        yield tuple(name or f"column {place}" for place, name in enumerate(header, start=1)), rows
        at = end


def _cells(line: str) -> list[str]:
    text = line.strip().removeprefix("|")
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return [_plain(cell) for cell in _BAR.split(text)]


def _plain(cell: str) -> str:
    """Return the text of a cell without escapes and emphasis marks."""
    return re.sub(r"^([*_]{1,2})(.+)\1$", r"\2", cell.replace("\\|", "|").strip())


def _typed(
    header: Sequence[str], cells: Sequence[Sequence[str]], near: Sequence[str], *, is_excel: bool
) -> list[dict[str, Any]]:
    """Return rows in which a column's texts become numbers or dates, if the whole column can be converted.

    Numbers of an Excel file have English marks, as the reader of its cells writes them.
    """
    names = _unique(header)
    columns = [[row[place] for row in cells] for place in range(len(names))]
    marks = column_marks([*header, *near], columns, "|")
    if is_excel:
        marks = [column_marks([], [column], ",")[0] for column in columns]
    values = [column_values(column, mark) for column, mark in zip(columns, marks, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _unique(header: Sequence[str]) -> list[str]:
    names: list[str] = []
    for place, name in enumerate(header, start=1):
        names.append(name if name not in names else f"{name} {place}")
    return names
