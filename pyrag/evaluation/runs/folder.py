"""Folder of a run, written so that it survives a kill.

    config.json      the run's settings (compared when it is resumed) and the sessions that worked on it
    results.jsonl    one line per question, set and method; the last line of a question counts
    traces/          one trace per line for each set and method; a result holds the position of its trace
    journal/         with --resume-steps: requests and replies of unfinished questions
    summary.json     written in one step when all questions are done

Results and traces are only appended, and are synced after each question, the trace before the result that refers to it.
A killed process therefore only loses unfinished questions, and the next process cuts off any incomplete line. A lock
keeps out a second process.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pyrag._io.files import lock, write_all, write_json, writing
from pyrag._io.jsonl import append, cut_off, cut_off_torn, whole_lines
from pyrag.errors import DataError, UsageError
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace
from pyrag.trace.plain import encoded

FORMAT = 1  # version of the folder and its rows; raised when scores change their meaning
CONFIG, RESULTS, SUMMARY, TRACES = "config.json", "results.jsonl", "summary.json", "traces"


@dataclass(frozen=True, slots=True)
class Run:
    """Run on disk: `rows` holds the latest result of each question."""

    folder: Path
    config: dict[str, Any]
    rows: tuple[ResultRow, ...]

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.folder.resolve().name

    def trace(self, row: ResultRow) -> Trace:
        """Return the trace of a row. Raises `DataError` if the trace file does not hold it."""
        path = trace_path(self.folder, row.set, row.method)
        start, length = row.trace
        try:
            with path.open("rb") as file:
                file.seek(start)
                return from_json(file.read(length))
        except OSError as error:
            raise DataError(f"cannot read the trace of {row.id} in {path}: {error.strerror}") from error
        except DataError as error:
            raise DataError(f"{path} at byte {start}: {error}; restore the file") from error


def trace_path(folder: Path, set_name: str, method: str) -> Path:
    """Return the path of a set's and method's traces.

    Args:
        folder: Folder of the run.
        set_name: Name of the set.
        method: Name of the method.
    """
    return folder / TRACES / f"{set_name}.{method}.jsonl"


def read_run(folder: Path) -> Run:
    """Load a run. Raises `DataError` if the folder does not contain one."""
    config = _read_config(folder)
    if not {"sets", "methods"} <= config["run"].keys() or not config["sessions"]:
        raise DataError(f"{folder / CONFIG} is not the config of a run of pyrag bench: choose another folder")
    rows = _rows(folder / RESULTS) if (folder / RESULTS).exists() else {}
    return Run(folder, config, tuple(rows.values()))


class RunWriter:
    """Run to which results can be added; created by `open_run`.

    `rows` holds earlier and new results, and `sessions` holds the notes on the processes that worked on it, this one
    last.
    """

    def __init__(
        self, folder: Path, rows: dict[tuple[str, str, str], ResultRow], sessions: Sequence[Mapping[str, Any]]
    ) -> None:
        self.folder, self.rows, self.sessions = folder, rows, sessions
        self._cure = f"make room and run the same command with --out {folder}: what is answered is kept"
        # Without buffers, since data that a full disk refused must not be written when the file is closed.
        self._results: IO[bytes] = (folder / RESULTS).open("ab", buffering=0)
        self._traces: dict[Path, IO[bytes]] = {}

    def write(self, row: ResultRow, trace: Trace) -> ResultRow:
        """Store a result and its trace on disk; return the row as stored.

        Args:
            row: The result.
            trace: Trace of the result.

        Raises:
            DataError: The trace cannot be written in any form; nothing was stored.
            StorageError: The file cannot be written, such as on a full disk.
        """
        line = to_json(trace)
        with writing(trace_path(self.folder, row.set, row.method), self._cure):
            file = self._trace_file(row)
            stored = replace(row, trace=(file.tell(), len(line)), session=len(self.sessions) - 1)
            append(file, line)
        with writing(self.folder / RESULTS, self._cure):
            append(self._results, encoded(stored))
        self.rows[stored.key] = stored
        return stored

    def _trace_file(self, row: ResultRow) -> IO[bytes]:
        path = trace_path(self.folder, row.set, row.method)
        if path not in self._traces:
            self._traces[path] = path.open("ab", buffering=0)
        return self._traces[path]

    def close(self) -> None:
        """Close the files."""
        for file in (self._results, *self._traces.values()):
            file.close()


@contextmanager
def open_run(folder: Path, identity: Mapping[str, Any], session: Mapping[str, Any]) -> Iterator[RunWriter]:
    """Start a run in the folder, or resume the one in it.

    Args:
        folder: Folder of the run.
        identity: Settings that all sessions of the run must share.
        session: Notes on this process.

    Raises:
        UsageError: The folder holds a run with other settings or something else, or is in use.
    """
    with open_folder(folder, identity, session) as sessions:
        with writing(folder):
            (folder / TRACES).mkdir(exist_ok=True)
            writer = RunWriter(folder, _recover(folder), sessions)
        try:
            yield writer
        finally:
            writer.close()


@contextmanager
def open_folder(
    folder: Path, identity: Mapping[str, Any], session: Mapping[str, Any], results: str = RESULTS
) -> Iterator[list[dict[str, Any]]]:
    """Create and lock the folder of a run, and yield the notes on its sessions, this one last.

    Args:
        folder: Folder of the run.
        identity: Settings that all sessions of the run must share.
        session: Notes on this process.
        results: File of results. As long as it is empty, the identity may change.

    Raises:
        UsageError: The folder holds a run with other settings or something else, or is in use.
    """
    _check_folder(folder)
    make_folder(folder)
    with locked(folder):
        yield _register(folder, plain({**identity, "format": FORMAT}), dict(session), folder / results)


def _check_folder(folder: Path) -> None:
    # A process that was killed right at its start leaves a lock and an incomplete config.
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if CONFIG not in there and any(name != "lock" and not name.startswith(f".{CONFIG}") for name in there):
        raise UsageError(f"{folder} holds files that are not a run: choose another folder with --out")


def make_folder(folder: Path) -> None:
    """Create a folder if it does not exist. Raises `UsageError` if it cannot be created or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise UsageError(f"{folder} is a file: choose a folder with --out") from None
    except OSError as error:
        raise UsageError(
            f"cannot write into {folder} ({error.strerror}): choose another folder with --out, or check its permissions"
        ) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock for the block; it is released even if the process is killed."""
    path = folder / "lock"
    with path.open("a+b", buffering=0) as file:

        def refuse() -> None:
            file.seek(0)
            owner = file.read().decode("utf-8", "replace").strip() or "another process"
            raise UsageError(
                f"{folder} is in use by {owner}: wait for it, or choose another folder with --out"
            ) from None

        lock(file, refuse)
        with writing(path):
            file.truncate(0)
            write_all(file, f"process {os.getpid()} on {os.uname().nodename}".encode())
        yield


def _register(folder: Path, identity: dict[str, Any], session: dict[str, Any], results: Path) -> list[dict[str, Any]]:
    """Add the session to the config, and return all notes. Raises `UsageError` if the settings differ."""
    path = folder / CONFIG
    config: dict[str, Any] = _read_config(folder) if path.exists() else {"run": identity, "sessions": []}
    if not results.exists() or not results.stat().st_size:  # nothing is bound to the old settings yet
        config["run"] = identity
    if config["run"] != identity:
        raise UsageError(
            f"{folder} holds a run with {_difference(config['run'], identity)}: "
            "choose another folder with --out, or repeat the options of that run"
        )
    config["sessions"].append(session)
    write_json(path, config)
    sessions: list[dict[str, Any]] = config["sessions"]
    return sessions


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the first difference between two configs: `limit 10, not 20`."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for key in (*before, *after):
        if before.get(key, "none") != after.get(key, "none"):
            return f"{key.replace('settings.', '')} {_shown(before.get(key))}, not {_shown(after.get(key))}"
    return "other settings"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def plain(value: Any) -> Any:
    """Return a value in the form in which JSON returns it, for comparison."""
    return json.loads(json.dumps(value))


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{folder} is not a run of pyrag bench ({path.name}: {error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}): restore it, or choose another folder with --out") from error
    kinds = {"run": dict, "sessions": list}
    if not isinstance(config, dict) or not all(isinstance(config.get(key), kind) for key, kind in kinds.items()):
        raise DataError(f"{path} is not the config of a run: choose another folder")
    return config


def _recover(folder: Path) -> dict[tuple[str, str, str], ResultRow]:
    """Return the stored results, after removing lines that a killed process left incomplete."""
    path = folder / RESULTS
    cut_off_torn(path)
    rows = _rows(path)
    ends: dict[Path, int] = {}
    for row in _all_rows(path):
        traces = trace_path(folder, row.set, row.method)
        ends[traces] = max(ends.get(traces, 0), sum(row.trace) + 1)
    for traces in (folder / TRACES).glob("*.jsonl"):
        cut_off(traces, ends.get(traces, 0))
    # Only a machine that stopped can lose a trace whose result it kept; such a question is asked again.
    return {key: row for key, row in rows.items() if _has_trace(folder, row)}


def _has_trace(folder: Path, row: ResultRow) -> bool:
    path = trace_path(folder, row.set, row.method)
    return path.exists() and path.stat().st_size >= sum(row.trace)


def _all_rows(path: Path) -> Iterator[ResultRow]:
    import msgspec

    decoder = msgspec.json.Decoder(ResultRow)
    for number, line in whole_lines(path):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} line {number} is not a result ({error}): remove the line") from error


def _rows(path: Path) -> dict[tuple[str, str, str], ResultRow]:
    """Return the last result of each question, by its set, method and id."""
    return {row.key: row for row in _all_rows(path)}
