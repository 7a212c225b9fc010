"""A full disk under `pyrag bench`: the file is named with what to do, and the run goes on once there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrag._io.files import write_all, write_atomic, writing
from pyrag._io.jsonl import append, whole_lines
from pyrag.errors import StorageError

from .conftest import ROOT

mounts = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs to mount a small disk")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", folder], capture_output=True).returncode:
        pytest.skip("may not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def bench(run: Path, *more: str, sets: str = "mini-musique") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyrag", "bench", "--sets", sets, "--method", "pyrag", "--out", str(run), *more]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def fill(disk: Path, leave: int) -> None:
    with (disk / "ballast").open("wb") as file:
        file.truncate(0)
        size = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - leave
        file.write(b"x" * size)


@pytest.mark.slow
@mounts
@pytest.mark.parametrize("more", [(), ("--resume-steps",)], ids=["plain", "steps"])
def test_a_full_disk_is_named_and_the_run_goes_on(disk: Path, more: tuple[str, ...]) -> None:
    run = disk / "run"
    done = bench(run, *more)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"pyrag: {run}/" in done.stderr
    assert "cannot be written (No space left on device): make room and run the same command" in done.stderr
    kept = len(list(whole_lines(run / "results.jsonl")))
    assert 0 < kept < 28
    subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
    again = bench(run, *more)
    assert again.returncode == 0, again.stderr
    assert len(list(whole_lines(run / "results.jsonl"))) == 28


@mounts
@pytest.mark.parametrize("leave", [0, 4096, 12288])
def test_a_disk_that_is_full_at_the_start_is_named(disk: Path, leave: int) -> None:
    fill(disk, leave)
    done = bench(disk / "run", sets="mini-popqa")
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"{disk}/run" in done.stderr
    assert "No space left on device" in done.stderr


@mounts
def test_a_report_on_a_full_disk_names_its_file(disk: Path, tmp_path: Path) -> None:
    assert bench(tmp_path / "run", sets="mini-popqa").returncode == 0
    fill(disk, 8192)
    command = [sys.executable, "-m", "pyrag", "bench", "report", str(tmp_path / "run"), "--out", str(disk / "report")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "disk/report/report." in done.stderr
    assert "cannot be written (No space left on device): make room" in done.stderr
    assert [path for path in (disk / "report").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("code", "cure"),
    [(errno.ENOSPC, "make room and run the same command again"), (errno.EACCES, "check its permissions, or choose")],
)
def test_what_cannot_be_written_is_one_sentence_with_a_cure(code: int, cure: str) -> None:
    with pytest.raises(StorageError) as caught, writing(Path("a/b")):
        raise OSError(code, os.strerror(code))
    assert str(caught.value).startswith(f"a/b cannot be written ({os.strerror(code)}): {cure}")


def test_a_device_without_room_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("ab", buffering=0) as file:
        append(file, b"line")
    with pytest.raises(StorageError, match="nowhere/x"):
        write_atomic(tmp_path / "nowhere" / "x", b"text")


def test_a_file_that_takes_little_at_once_gets_everything() -> None:
    class Slow:
        def __init__(self) -> None:
            self.data = b""

        def write(self, data: Any) -> int:
            self.data += bytes(data[:3])
            return min(3, len(data))

    file = Slow()
    write_all(file, b"0123456789")  # type: ignore[arg-type]
    assert file.data == b"0123456789"
