"""`pyrag index --watch`: updates at each change, survives failures, and ends at Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.index import read_info


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("The mill was built in 1872.", encoding="utf-8")
    command = ["index", "notes", "--out", "ix", "--watch", "--every", "0.1", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pyrag", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come true within a minute")


def passages(folder: Path) -> int:
    try:
        return read_info(folder).passages
    except DataError:
        return -1


def test_watch_follows_changes_until_interrupted(watching: subprocess.Popen[str], tmp_path: Path) -> None:
    until(lambda: passages(tmp_path / "ix") == 1)
    (tmp_path / "notes/b.txt").write_text("The weir was repaired in 1950.", encoding="utf-8")
    until(lambda: passages(tmp_path / "ix") == 2)
    (tmp_path / "notes").rename(tmp_path / "away")
    time.sleep(0.5)
    (tmp_path / "away").rename(tmp_path / "notes")
    (tmp_path / "notes/a.txt").unlink()
    until(lambda: passages(tmp_path / "ix") == 1)
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 0, err
    counts = [json.loads(line)["passages"] for line in out.splitlines()]
    assert counts[:2] == [1, 2]
    assert "notes does not exist" in err
    assert "Traceback" not in err
    assert err.rstrip().endswith("no longer watching")


def test_files_of_the_index_itself_are_no_change(tmp_path: Path) -> None:
    from pyrag.cli.index.watch import _state

    (tmp_path / "ix").mkdir()
    (tmp_path / "ix/part").write_text("x", encoding="utf-8")
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    before = _state([tmp_path], tmp_path / "ix")
    assert list(before) == [f"{tmp_path}{os.sep}a.txt"]
    (tmp_path / "ix/part").write_text("xyz", encoding="utf-8")
    assert _state([tmp_path], tmp_path / "ix") == before
    (tmp_path / "a.txt").write_text("xyz", encoding="utf-8")
    assert _state([tmp_path], tmp_path / "ix") != before
    assert len(_state([tmp_path / "*.txt"], tmp_path / "ix")) == 1
