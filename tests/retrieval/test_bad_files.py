"""Files that cannot be read are named and left out, or refused; a disk that is full; nothing is half-written."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import DataError, PyRAGError
from pyrag.retrieval.documents import unpack
from pyrag.retrieval.documents.reading import read_passages
from pyrag.retrieval.index import update_index
from pyrag.retrieval.indexing import update
from pyrag.retrieval.indexing.verify import verify_index

from .updating import content, records


@pytest.fixture(autouse=True)
def trusted_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tests are young, and would all be compared by content."""
    monkeypatch.setattr(update, "RACY", -1)


@pytest.fixture
def real_times(trusted_times: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "RACY", 2_000_000_000)


def test_bad_files_of_a_folder_are_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "FREE", 1 << 16)
    folder, index = records(tmp_path / "n", 1, 10), tmp_path / "ix"
    (folder / "broken.jsonl").write_text('{"id": "lost", "text": "zebra"}\n' * 1 + "{nope\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "bomb.txt.gz").write_bytes(gzip.compress(b"\n" * (1 << 20)))
    (folder / "junk.zip").write_bytes(b"junk")
    (folder / "junk.pdf").write_bytes(b"junk")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 99)[:-9])
    (folder / "loop").symlink_to(folder)
    (folder / "self.txt").symlink_to("self.txt")
    (folder / "gone.txt").symlink_to("nowhere.txt")
    os.mkfifo(folder / "pipe.txt")
    with zipfile.ZipFile(folder / "mixed.zip", "w") as archive:
        archive.writestr("good.txt", "A good otter.")
        archive.writestr("bad.txt", b"\xff")
    built = update_index([folder], index)
    names = ["bomb.txt.gz", "broken.jsonl", "cut.jsonl.gz", "junk.pdf", "junk.zip", "latin.txt", "mixed.zip!/bad.txt"]
    assert [name for name, _ in built.problems] == [str(folder / name) for name in names]
    assert built.info.left_out == len(names)
    assert all("\n" not in reason and reason.count(str(folder)) == 1 for _, reason in built.problems)
    assert {one.id.partition("-")[0].partition("#")[0] for one in content(index)} == {"0", "mixed.zip!/good.txt"}
    assert verify_index(index).problems == ()
    again = update_index([folder], index)
    assert (again.problems, again.added, again.removed) == (built.problems, 0, 0)
    (folder / "latin.txt").write_text("café")
    assert update_index([folder], index).info.left_out == len(names) - 1


def test_a_file_that_turns_bad_goes_with_all_it_had(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    update_index([folder], index)
    with (folder / "0.jsonl").open("a") as file:
        file.write("{nope\n")
    built = update_index([folder], index)
    assert (built.removed, built.info.passages, built.info.left_out) == (10, 10, 1)
    with pytest.raises(DataError, match=r"0\.jsonl line 11: not JSON"):
        update_index([folder / "0.jsonl", folder], index)
    assert len(content(index)) == 10


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files_are_left_out(tmp_path: Path) -> None:
    folder = records(tmp_path / "n", 2, 10)
    (folder / "0.jsonl").chmod(0)
    assert "cannot be read (Permission denied)" in update_index([folder], tmp_path / "ix").problems[0][1]


def test_files_that_fail_to_read_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    real = Path.open

    def failing(self: Path, *args: Any, **more: Any) -> Any:
        if self.name == "0.jsonl":
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *args, **more)

    monkeypatch.setattr(Path, "open", failing)
    built = update_index([folder], index)
    assert built.problems == (
        (f"{folder}/0.jsonl", f"{folder}/0.jsonl cannot be read (Permission denied): check its permissions"),
    )
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\)"):
        update_index([folder / "0.jsonl"], tmp_path / "other")
    monkeypatch.setattr(Path, "open", real)
    assert update_index([folder], index).info.passages == 20


def test_nothing_left_is_refused_and_the_index_stays(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 1, 10), tmp_path / "ix"
    update_index([folder], index)
    (folder / "0.jsonl").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"none of the files could be read, the first for this reason: .*0\.jsonl"):
        update_index([folder], index)
    (folder / "0.jsonl").unlink()
    with pytest.raises(DataError, match="holds no file to read"):
        update_index([folder], index)
    assert len(content(index)) == 10


def test_an_id_claimed_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    update_index([folder], index)
    with (folder / "1.jsonl").open("a") as file:
        file.write('{"id": "0-3", "text": "x"}\n')
    with pytest.raises(DataError, match=r"'0-3' is used twice, at .*0\.jsonl line 4 and at .*1\.jsonl line 11: give"):
        update_index([folder], index)
    assert len(content(index)) == 20


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs to mount a small disk")
def test_a_full_disk_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], capture_output=True).returncode:
        pytest.skip("may not mount")
    try:
        folder = records(tmp_path / "n", 1, 10)
        update_index([folder], disk / "ix")
        lines = (json.dumps({"text": f"{n} " + random.Random(n).randbytes(400).hex()}) + "\n" for n in range(20_000))
        (folder / "big.jsonl").write_text("".join(lines))
        with pytest.raises(PyRAGError, match=r"could not be written \(.*(No space left|full).*\): make room"):
            update_index([folder], disk / "ix", checkpoint=0)
        assert len(content(disk / "ix")) == 10
        (folder / "big.jsonl").unlink()
        update_index([folder], disk / "ix")
        assert verify_index(disk / "ix").problems == ()
        assert not list(disk.rglob("*building*"))
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # threads of tantivy may not be through yet


@pytest.mark.slow
def test_lines_of_two_gigabytes_are_left_out(tmp_path: Path) -> None:
    folder = records(tmp_path / "n", 1, 10)
    with (folder / "big.jsonl").open("wb") as file:
        file.write(b'{"text": "')
        file.truncate(2 << 30)
    with (folder / "zeros.txt").open("wb") as file:
        file.truncate(1 << 31)
    code = (
        "import resource, sys; from pyrag.retrieval.index import update_index; "
        "built = update_index([sys.argv[1]], sys.argv[2]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, built.info.passages, built.problems)"
    )
    command = [sys.executable, "-c", code, folder, tmp_path / "ix"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, passages, problems = done.stdout.split(maxsplit=2)
    assert "big.jsonl line 1: longer than 32 MiB" in problems
    assert "zeros.txt line 1: not text (a zero byte)" in problems
    assert int(peak) < 1000  # MiB; the files hold 4,096
    assert int(passages) == 10


@pytest.mark.slow
def test_text_without_line_breaks_is_read_in_bounded_memory(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("w") as file:
        for n in range(400):
            file.write(f"word{n} and more words without any break at all " * 2000)
    tracemalloc.start()
    count = sum(1 for _ in read_passages([tmp_path / "a.txt"]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 30_000
    assert peak < 100 << 20
