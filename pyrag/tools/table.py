"""Tool `table(name)`: rows of CSV and TSV files as data, so that counts and sums come from the file, not from a reader.

    PyRAG("openai:MODEL@URL", retriever="notes/.pyrag", tools=[table_tool("notes")])

A column is read as numbers or dates if each of its cells is one. Whether the point in "1.750" separates thousands or
decimals is inferred from the column and the table (`pyrag_helpers.columns`); without evidence, the cells remain text.
Dates become ISO text, which sorts in the order of time.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pyrag._io.specs import expanded
from pyrag.errors import DataError
from pyrag.tools.tool import Sourced, Tool, ToolError
from pyrag.trace.model import Passage
from pyrag_helpers.columns import Cell, column_marks, column_values, is_single_column

MAX_FILE_MB = 64
MAX_ROWS = 100_000  # rows of a file
MAX_TABLES = 200
_MAX_CELL = 1_000_000  # characters
_SAMPLE_LINES = 60
_SHOWN_ROWS = 3  # rows in a citation
_SHOWN_TABLES = 40
_SHOWN_COLUMNS = 30
_MAX_NAME = 60
_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of a folder: paths by name."""

    paths: dict[str, Path]
    root: Path

    def __call__(
        self, name: str, where: dict[str, Cell] | None = None, columns: list[str] | None = None
    ) -> Sourced[list[dict[str, Any]]]:
        if name not in self.paths:
            raise ToolError(f"there is no table {name!r}: choose from {', '.join(list(self.paths)[:_SHOWN_TABLES])}")
        if not _is_inside(self.paths[name], self.root):  # it has become a link since the folder was listed
            raise ToolError(f"the table {name!r} leads out of its folder: choose another one")
        header, rows = read_table(self.paths[name])
        if unknown := [column for column in (*(where or {}), *(columns or ())) if column not in header]:
            raise ToolError(f"the table {name!r} has no column {unknown[0]!r}: choose from {', '.join(header)}")
        matches = [row for row in rows if all(row[key] == value for key, value in (where or {}).items())]
        selected = [{key: row[key] for key in columns or header} for row in matches]
        return Sourced(selected, (self._source(name, selected),))

    def _source(self, name: str, rows: Sequence[dict[str, Any]]) -> Passage:
        path = self.paths[name]
        lines = [", ".join(f"{key}: {value}" for key, value in row.items()) for row in rows[:_SHOWN_ROWS]]
        text = "\n".join([f"{len(rows)} rows of {path.name}", *lines])
        return Passage(f"table:{name}", path.name, text[:2_000], source=path.name)


def table_tool(folder: str | Path, *, name: str = "table") -> Tool[..., Any]:
    """Return the tool `table(name, where, columns)` over the CSV and TSV files of a folder and its subfolders.

    Args:
        folder: The folder, or a single file.
        name: Name that programs use to call the tool.

    Raises:
        DataError: The folder has no such files, or one of them cannot be read.
    """
    place = expanded(folder)
    paths = _tables_in(place)
    shown = list(paths.items())[:_SHOWN_TABLES]
    listed = [f"{key}: {', '.join(map(_name, read_table(path)[0][:_SHOWN_COLUMNS]))}" for key, path in shown]
    if len(paths) > _SHOWN_TABLES:
        listed.append(f"… and {len(paths) - _SHOWN_TABLES} more")
    description = (
        "All rows of a table as dicts by column, numbers as numbers and dates as ISO text; None stands for an empty "
        "cell. `where` keeps the rows with these values, `columns` leaves the other columns out: use both on large "
        f"tables. Tables with their columns:\n{chr(10).join(listed)}"
    )
    return Tool(Tables(paths, place), name, description)


def _tables_in(place: Path) -> dict[str, Path]:
    listed = [place] if place.is_file() else sorted(place.rglob("*"))
    listed = [path for path in listed if path.suffix.lower() in _DELIMITERS and path.is_file()]
    paths = [path for path in listed if _is_inside(path, place)]
    for path in sorted(set(listed) - set(paths)):
        warnings.warn(f"left out: {path} leads out of the folder: put a copy there, or name its file", stacklevel=3)
    if not paths:
        raise DataError(f"there is no CSV or TSV file in {place}: name the folder that holds them")
    if len(paths) > MAX_TABLES:
        raise DataError(
            f"{place} holds {len(paths)} tables, and at most {MAX_TABLES} are possible: name a folder in it"
        )
    stems = [path.stem for path in paths]
    root = place if place.is_dir() else place.parent
    names = [path.stem if stems.count(path.stem) == 1 else str(path.relative_to(root)) for path in paths]
    return dict(zip(names, paths, strict=True))


def _is_inside(path: Path, place: Path) -> bool:
    """Return whether a file is in a folder after symbolic links are resolved; always True for the named file itself."""
    return path == place or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(place))


def read_table(path: Path) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...]]:
    """Return the columns and rows of a file. Raises `DataError` if it is not a table or is too large."""
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"cannot read the table {path}: {reason}; save it as CSV in UTF-8") from error


@lru_cache(maxsize=16)
def _read(path: Path, changed: int, size: int) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...]]:
    if size > MAX_FILE_MB << 20:
        raise DataError(f"the table {path} is larger than {MAX_FILE_MB} MiB: put it into a database, and use sql:FILE")
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        marks = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in _DELIMITERS[path.suffix.lower()]}
        delimiter = max(marks, key=lambda mark: marks[mark])
        if max(marks.values()) == 1 and is_single_column([first, *islice(file, _SAMPLE_LINES)]):
            delimiter = "\t"
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter)
        header = _unique([cell.strip() for cell in next(reader, [])])
        cells = [row for row in reader if any(cell.strip() for cell in row)]
    if not header:
        raise DataError(f"the table {path} is empty: it needs a first line with the names of its columns")
    if len(cells) > MAX_ROWS:
        raise DataError(f"the table {path} has more than {MAX_ROWS:,} rows: put it into a database, and use sql:FILE")
    filled = [[cell.strip() for cell in row[: len(header)]] + [""] * (len(header) - len(row)) for row in cells]
    cells_by_column = [[row[place] for row in filled] for place in range(len(header))]
    decimals = column_marks(header, cells_by_column, delimiter)
    columns = [column_values(column, mark) for column, mark in zip(cells_by_column, decimals, strict=True)]
    return tuple(header), tuple(dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True))


def _unique(header: Sequence[str]) -> list[str]:
    names: list[str] = []
    for place, cell in enumerate(header, start=1):
        name = cell or f"column {place}"
        names.append(name if name not in names else f"{name} {place}")
    return names


def _name(text: str) -> str:
    """Return a column's name on one line, for a prompt."""
    return "".join(character if character.isprintable() else " " for character in text)[:_MAX_NAME]
