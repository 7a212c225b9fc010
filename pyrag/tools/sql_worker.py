"""Process that runs one query: `python -I sql_worker.py`, with the request as JSON on stdin and the outcome on stdout.

SQL written by a model is hostile input. It therefore runs outside pyrag's own process, which kills this process when
its time is up. The database itself refuses everything but reading: it is opened read-only; an authorizer (SQLite) or
the configuration (DuckDB) denies other files, extensions and settings; memory, rows and bytes are limited. This module
imports nothing from pyrag.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MAX_VALUE = 1_000_000  # bytes of a value inside the database
MAX_SCHEMA = 4_000  # characters of the schema's description
_MAX_NAME = 60
_MAX_REASON = 1_000  # characters of the database's error message, which may quote a value
_SQLITE_MEMORY = 512 << 20  # bytes of address space
_DUCKDB_MEMORY = 2 << 30
_MAX_FILE = 1 << 20  # bytes; a database with a write-ahead log needs a small file beside it to be read
_REFUSED = frozenset(("edit", "fsdir", "fts3_tokenizer", "load_extension", "readfile", "writefile", "zipfile"))

_SHOWING_VIEWS = re.compile(r"(?:duckdb|pragma)_.*|pg_settings")
_SHOWING_FUNCTIONS = re.compile(
    r"(?:duckdb|pragma|read|parquet|sniff|python|pandas|arrow)_.*|database_list|query|query_table|current_setting|getenv"
    r"|glob|json_execute_serialized_sql|which_secret"
)


def main() -> None:
    request = json.load(sys.stdin)
    _limit(request)
    with contextlib.closing(_DATABASES[request["engine"]](request)) as database:
        try:
            outcome = database.schema() if request["query"] is None else _rows(database, request)
        except MemoryError:
            outcome = {"error": "the query takes too much memory"}
        except Exception as error:  # an error of the database, with its own message
            outcome = {"error": database.reason(error)[:_MAX_REASON]}
    json.dump(outcome, sys.stdout)


def _limit(request: dict[str, Any]) -> None:
    """Limit the memory and processor time of this process, and the size of the files that it writes."""
    memory = _DUCKDB_MEMORY if request["engine"] == "duckdb" else _SQLITE_MEMORY
    seconds = math.ceil(request["seconds"]) + 1
    for kind, maximum in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _MAX_FILE),
    ):
        with contextlib.suppress(OSError, ValueError):  # the system has no such limit
            resource.setrlimit(kind, (maximum, maximum))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


class _SQLite:
    """SQLite database that can only be read."""

    def __init__(self, request: dict[str, Any]) -> None:
        import sqlite3

        self._deadline = time.monotonic() + request["seconds"]
        self._connection = sqlite3.connect(f"{Path(request['path']).absolute().as_uri()}?mode=ro", uri=True)
        for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        for limit, maximum in (
            (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            self._connection.setlimit(limit, maximum)
        self._connection.set_progress_handler(self._is_late, 10_000)

    def _is_late(self) -> bool:
        return bool(time.monotonic() > self._deadline)

    def query(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        self._connection.set_authorizer(_authorize)
        cursor = self._connection.execute(query)
        return [str(column[0]) for column in cursor.description or ()], cursor

    def schema(self) -> dict[str, Any]:
        tables = self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return {"schema": described({str(name): self._columns(str(name)) for (name,) in tables.fetchall()})}

    def _columns(self, table: str) -> list[str]:
        quoted = '"' + table.replace('"', '""') + '"'
        keys = {row[3]: f"{row[2]}.{row[4]}" for row in self._connection.execute(f"PRAGMA foreign_key_list({quoted})")}
        return [
            f"{row[1]} {row[2]}".strip() + (f" references {keys[row[1]]}" if row[1] in keys else "")
            for row in self._connection.execute(f"PRAGMA table_info({quoted})")
        ]

    def reason(self, error: Exception) -> str:
        if self._is_late():
            return "the query took too long: read fewer rows"
        return f"{error}: only SELECT is possible" if str(error) == "not authorized" else str(error)

    def close(self) -> None:
        self._connection.close()


def _authorize(action: int, first: str | None, second: str | None, *rest: Any) -> int:
    """Return SQLite's verdict on an action: allow only what a SELECT needs."""
    import sqlite3

    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if (second or "").lower() in _REFUSED else sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


class _DuckDB:
    """DuckDB database that can only be read."""

    def __init__(self, request: dict[str, Any]) -> None:
        import duckdb

        self._duckdb = duckdb
        self._folder = f"{Path(request['path']).absolute().parent}/"
        config: dict[str, Any] = {
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": "512MB",
            "temp_directory": "",
            "threads": "1",
        }
        self._connection = duckdb.connect(request["path"], read_only=True, config=config)
        self._connection.execute("SET lock_configuration = true")

    def query(self, query: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
        statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
            raise ValueError("only one SELECT statement is possible")
        self._check(query)
        result = self._connection.execute(statements[0])
        return [str(column[0]) for column in result.description or ()], iter(result.fetchone, None)

    def _check(self, query: str) -> None:
        """Refuse functions and views that reveal where the database is stored or how this machine is configured."""
        (tree,) = self._connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone() or ("",)
        for kind, name in _names(json.loads(tree)):
            refused = _SHOWING_FUNCTIONS if kind == "function_name" else _SHOWING_VIEWS
            if refused.fullmatch(name.strip('"').lower()):
                raise ValueError(f"{name} is not possible: select from the tables of the database")

    def schema(self) -> dict[str, Any]:
        columns = self._connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'main' ORDER BY table_name, ordinal_position"
        ).fetchall()
        tables: dict[str, list[str]] = {}
        for table, column, kind in columns:
            tables.setdefault(str(table), []).append(f"{column} {kind}")
        return {"schema": described(tables)}

    def reason(self, error: Exception) -> str:
        return str(error).replace(self._folder, "")

    def close(self) -> None:
        self._connection.close()


def _names(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield the functions and tables used in a statement that DuckDB has parsed."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from (
                (kind, node[kind]) for kind in ("function_name", "table_name") if isinstance(node.get(kind), str)
            )
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


_DATABASES: dict[str, type[_SQLite] | type[_DuckDB]] = {"sqlite": _SQLite, "duckdb": _DuckDB}


def _rows(database: _SQLite | _DuckDB, request: dict[str, Any]) -> dict[str, Any]:
    columns, results = database.query(request["query"])
    names, size = unique(columns), 0
    rows: list[dict[str, Any]] = []
    for row in results:
        if len(rows) == request["rows"]:
            return {"error": f"more than {request['rows']} rows: count, sum or filter in SQL, or add a LIMIT"}
        too_large: dict[str, Any] = {
            "error": f"the rows have more than {request['bytes']} bytes: select fewer columns or rows"
        }
        if _room_after(list(row), request["bytes"] - size) < 0:  # checked before the row is copied
            return too_large
        made = dict(zip(names, map(plain, row), strict=True))
        size += len(json.dumps(made))  # size of the output, whatever the types of the values
        if size > request["bytes"]:
            return too_large
        rows.append(made)
    return {"rows": rows}


def _room_after(value: Any, room: int) -> int:
    """Return how many bytes remain after a value, counting one byte for the value and for each character in it."""
    room -= len(value) if isinstance(value, str) else 1
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            if room < 0:
                break
            room = _room_after(item, room)
    return room


def plain(value: Any) -> Any:
    """Return a database value as JSON data: dates as ISO text, decimals as numbers, blobs as a note of their size."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None


def unique(columns: Sequence[str]) -> list[str]:
    """Return column names made unique by numbering repeated ones."""
    names: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for column in columns:
        name = column
        while name in names:
            number = numbers[column] = numbers.get(column, 1) + 1
            name = f"{column}_{number}"
        names[name] = None
    return list(names)


def described(tables: dict[str, list[str]]) -> str:
    """Return tables with their columns, one table per line, up to `MAX_SCHEMA` characters."""
    lines: list[str] = []
    room = MAX_SCHEMA
    for table, columns in tables.items():
        line = f"{_name(table)}({', '.join(map(_name, columns))})"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"… and {len(tables) - len(lines)} more tables")
            break
        lines.append(line)
    return "\n".join(lines)


def _name(text: str) -> str:
    """Return a name from the database on one line, for a prompt."""
    return "".join(character if character.isprintable() else " " for character in text)[:_MAX_NAME]


if __name__ == "__main__":
    main()
