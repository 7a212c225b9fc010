"""Tool `sql(query)`: a SELECT over a database that programs can only read.

    PyRAG("openai:MODEL@URL", tools=[sql_tool("shop.db")])

Each query runs in its own process (`sql_worker.py`), which is killed when its time is up. The rows are dicts, and an
answer that depends on them cites the query.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from pyrag._io.specs import expanded
from pyrag.errors import ConfigError, DataError, install_extra
from pyrag.tools.tool import Sourced, Tool, ToolError
from pyrag.trace.model import Passage

MAX_ROWS = 500
MAX_SECONDS = 5.0
MAX_BYTES = 500_000  # size of a query's rows
MAX_QUERY = 16 * 1024  # characters
_GRACE = 3.0  # seconds for the process to start and to end by itself
_SHOWN_ROWS = 5  # rows in a citation
_MAX_SHOWN = 2_000  # characters of a row in a citation
_MAX_REPLY = MAX_BYTES + 64 * 1024  # bytes that the process may write
_READ_BYTES = 64 * 1024
_SCHEMA_SECONDS = 30.0
_COMMAND = (sys.executable, "-I", str(Path(__file__).with_name("sql_worker.py")))
_HEADS = {"sqlite": (0, b"SQLite format 3\0"), "duckdb": (8, b"DUCK")}


@dataclass(frozen=True, slots=True)
class Database:
    """Database file, and the limits of a query."""

    path: Path
    engine: str
    rows: int = MAX_ROWS
    seconds: float = MAX_SECONDS

    async def __call__(self, query: str) -> Sourced[list[dict[str, Any]]]:
        if len(query) > MAX_QUERY:
            raise ToolError(f"a query has at most {MAX_QUERY} characters")
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
        )
        try:
            async with asyncio.timeout(self.seconds + _GRACE):
                reply = await _exchange(process, self._request(query))
        except TimeoutError:
            raise ToolError(f"the query took longer than {self.seconds:g} s: read fewer rows") from None
        finally:
            await _end(process)
        rows: list[dict[str, Any]] = _outcome(reply)["rows"]
        return Sourced(rows, (self._source(query, rows),))

    def schema(self) -> str:
        """Return the tables and their columns as text. Raises `DataError` if the database cannot be read."""
        try:
            return str(_outcome(_exchange_blocking(self._request(None)))["schema"])
        except ToolError as error:
            raise DataError(f"cannot read the database {self.path}: {error}") from error

    def _request(self, query: str | None) -> bytes:
        return json.dumps({
            "engine": self.engine, "path": str(self.path), "query": query, "rows": self.rows,
            "seconds": self.seconds, "bytes": MAX_BYTES,
        }).encode()  # fmt: skip

    def _source(self, query: str, rows: list[dict[str, Any]]) -> Passage:
        shown = [query, *(_clipped(json.dumps(row, ensure_ascii=False)) for row in rows[:_SHOWN_ROWS])]
        if len(rows) > _SHOWN_ROWS:
            shown.append(f"… {len(rows)} rows")
        key = hashlib.blake2b(query.encode("utf-8", "replace"), digest_size=6).hexdigest()
        return Passage(f"{self.path.name}#{key}", self.path.name, "\n".join(shown), source=self.path.name)


def sql_tool(
    path: str | Path, *, name: str = "sql", rows: int = MAX_ROWS, seconds: float = MAX_SECONDS
) -> Tool[..., Any]:
    """Return the tool `sql(query)` over a database file.

    Args:
        path: File of SQLite, or of DuckDB if that is installed. It is only read.
        name: Name that programs use to call the tool.
        rows: Maximum number of rows of a query. A query with more rows fails, so that programs never compute over a
            part of the rows.
        seconds: Time limit of a query, in seconds.

    Raises:
        ConfigError: DuckDB is not installed, or a limit is not positive.
        DataError: The file is not a database, or cannot be read.
    """
    if rows < 1 or not seconds > 0:
        raise ConfigError(f"{name}: rows and seconds must be above 0, not {rows} and {seconds}")
    place = expanded(path)
    database = Database(place, _engine_of(place), rows, seconds)
    description = (
        f"Rows of one SELECT statement ({_DIALECTS[database.engine]}) over the database {place.name}, as dicts by "
        f"column. At most {rows} rows: count, sum, sort and filter in SQL. Tables:\n{database.schema()}"
    )
    return Tool(database, name, description, timeout=seconds + 2 * _GRACE)


_DIALECTS = {"sqlite": "SQLite's SQL", "duckdb": "DuckDB's SQL"}


def _engine_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise DataError(f"cannot read the database {path}: {error.strerror}") from error
    engine = next((name for name, (place, mark) in _HEADS.items() if head[place:].startswith(mark)), "")
    if not engine:
        raise DataError(f"{path} is not a database of SQLite or DuckDB: name its file")
    if engine == "duckdb" and importlib.util.find_spec("duckdb") is None:
        raise ConfigError(f"{path} is a DuckDB database: {install_extra('duckdb')}")
    return engine


async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    """Send a request and return the reply. Raises `ToolError` if the reply is too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # the process has ended; its reply gives the reason
        process.stdin.write(request)
        await process.stdin.drain()
    process.stdin.close()
    reply = bytearray()
    while part := await process.stdout.read(_READ_BYTES):
        reply += part
        _check_size(len(reply))
    return bytes(reply)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process that is still running, and wait for its end."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        assert process.stdout is not None
        while await process.stdout.read(_READ_BYTES):  # the wait only ends once the pipe is empty
            pass
        await process.wait()


def _exchange_blocking(request: bytes) -> bytes:
    """Send a request and return the reply, without using an event loop."""
    with subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as process:  # noqa: S603
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(_SCHEMA_SECONDS, process.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.close()
            reply = process.stdout.read(_MAX_REPLY + 1)
        finally:
            timer.cancel()
            process.kill()
    _check_size(len(reply))
    return reply


def _check_size(size: int) -> None:
    if size > _MAX_REPLY:
        raise ToolError(f"the query was stopped: its reply has more than {_MAX_REPLY} bytes")


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _outcome(reply: bytes) -> Mapping[str, Any]:
    """Return the reply of the process. Raises `ToolError` if it reports an error or is not JSON."""
    try:
        outcome: dict[str, Any] = json.loads(reply)
    except (ValueError, RecursionError):
        raise ToolError("the query was stopped: it takes too much memory or time") from None
    if "error" in outcome:
        raise ToolError(str(outcome["error"]))
    return outcome
