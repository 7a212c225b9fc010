"""Files that cannot be read are named and left out, or refused; a disk that is full; nothing is half-written."""

from __future__ import annotations

import asyncio
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
from pyrag.retrieval import open_retriever
from pyrag.retrieval.documents import opened_document
from pyrag.retrieval.documents.reading import read_passages
from pyrag.retrieval.index import update_index
from pyrag.retrieval.indexing import update
from pyrag.retrieval.indexing.verify import verify_index

from .updating import assert_like_fresh, content, records


@pytest.fixture(autouse=True)
def trusted_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tests are young, and would all be compared by content."""
    monkeypatch.setattr(update, "RACY", -1)


@pytest.fixture
def real_times(trusted_times: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "RACY", 2_000_000_000)


def test_bad_files_of_a_folder_are_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_document, "FREE", 1 << 16)
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
    names = ["bomb.txt.gz", "cut.jsonl.gz", "junk.pdf", "junk.zip", "latin.txt", "mixed.zip!/bad.txt"]
    assert [name for name, _ in built.problems] == [str(folder / name) for name in names]
    assert built.info.left_out == len(names)
    assert all("\n" not in reason and reason.count(str(folder)) == 1 for _, reason in built.problems)
    assert {one.id.partition("-")[0].partition("#")[0] for one in content(index)} == {
        "0",
        "lost",
        "mixed.zip!/good.txt",
    }
    ((name, reason),) = built.bad_records
    assert name == str(folder / "broken.jsonl")
    assert reason.startswith(f"{name} line 2: not JSON")
    assert verify_index(index).problems == ()
    again = update_index([folder], index)
    assert (again.problems, again.added, again.removed) == (built.problems, 0, 0)
    (folder / "latin.txt").write_text("café")
    assert update_index([folder], index).info.left_out == len(names) - 1


BAD_LINES = [
    "{nope", "[1]", '{"id": "x", "title": "t"}', '{"id": "x", "text": " "}', '{"id": "x", "text": 3}',
    '{"id": "x", "text": "t", "deep": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}", '{"a":' * 5000 + "1" + "}" * 5000,
    '{"id": "x", "text": "t", "deep": ' + '{"a":' * 500_000 + "1" + "}" * 500_000 + "}", "[" * 1_000_000,
    '{"text": "\\ud800"}',
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
@pytest.mark.parametrize("named", [True, False])
def test_a_bad_line_costs_nothing_but_itself(tmp_path: Path, line: str, named: bool) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    path = folder / "0.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:4], line + "\n", *lines[4:]]))
    built = update_index([path, folder] if named else [folder], index)
    assert (built.info.passages, built.info.left_out, built.info.bad_records) == (20, 0, 1)
    ((name, reason),) = built.bad_records
    assert (name, reason.startswith(f"{path} line 5: ")) == (str(path), True)
    after = {one.id: one for one in content(index)}["0-9"]
    assert path.read_text()[after.start : after.end] == lines[9].rstrip()
    again = update_index([path, folder] if named else [folder], index)
    assert (again.bad_records, again.files_read) == (built.bad_records, 0)
    path.write_text("".join(lines))
    assert update_index([folder], index).info.bad_records == 0


def test_bad_rows_and_elements_cost_nothing_but_themselves(tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/a.csv").write_text("id,text\n1,zebra\n2,\n3,lion\n")
    (tmp_path / "n/b.json").write_text('[{"id": "4", "text": "tiger"}, {"id": "5"}, 6, {"id": "7", "text": "otter"}]')
    built = update_index([tmp_path / "n"], tmp_path / "ix")
    assert [one.id for one in content(tmp_path / "ix")] == ["1", "3", "4", "7"]
    assert [reason.partition(": ")[0] for _, reason in built.bad_records] == [
        f"{tmp_path}/n/a.csv line 3", f"{tmp_path}/n/b.json record 2", f"{tmp_path}/n/b.json record 3",
    ]  # fmt: skip


def test_a_line_without_an_end_costs_nothing_but_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.retrieval.documents.json_records.MAX_LINE", 1000)
    long = json.dumps({"id": "long", "text": "é" * 4000}, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_text(f'{{"id": "a", "text": "x"}}\n{long}\n{{"id": "b", "text": "y"}}\n')
    built = update_index([tmp_path / "a.jsonl"], tmp_path / "ix")
    first, second = content(tmp_path / "ix")
    assert (first.id, second.id, built.info.bad_records) == ("a", "b", 1)
    assert (tmp_path / "a.jsonl").read_text()[second.start : second.end] == '{"id": "b", "text": "y"}'


def test_a_file_of_bad_lines_only_is_left_out(tmp_path: Path) -> None:
    folder = records(tmp_path / "n", 1, 10)
    (folder / "bad.jsonl").write_text("{nope\n" * 30)
    built = update_index([folder], tmp_path / "ix")
    assert [reason.partition(": ")[0] for _, reason in built.problems] == [f"{folder}/bad.jsonl line 1"]
    assert built.bad_records == ()
    with pytest.raises(DataError, match=r"bad\.jsonl line 1: not JSON"):
        update_index([folder / "bad.jsonl"], tmp_path / "other")


def test_only_the_first_bad_lines_are_named_and_all_counted(tmp_path: Path) -> None:
    folder = records(tmp_path / "n", 1, 10)
    with (folder / "0.jsonl").open("a") as file:
        file.write("{nope\n" * 500)
    built = update_index([folder], tmp_path / "ix")
    assert (built.info.bad_records, len(built.bad_records), built.info.passages) == (500, 20, 10)


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


def test_spoiled_files_leave_the_index_as_it_was(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 1, 10), tmp_path / "ix"
    update_index([folder], index)
    (folder / "0.jsonl").write_bytes(b"\xff")
    built = update_index([folder], index)
    assert built.problems[0][1].endswith("; its passages of before stay (10)")
    assert (built.removed, built.info.left_out) == (0, 1)
    assert len(content(index)) == 10


@pytest.mark.parametrize("dense", [True, False])
def test_an_index_without_files_is_empty(tmp_path: Path, dense: bool) -> None:
    from pyrag.cli.index.work import Vectors, opened_parts

    folder, index = records(tmp_path / "n", 1, 10), tmp_path / "ix"
    with opened_parts(Vectors(embedder="bundled" if dense else None), index) as parts:
        update_index([folder], index, parts=parts)
        (folder / "0.jsonl").unlink()
        (folder / "bad.txt").write_bytes(b"\xff")
        built = update_index([folder], index, parts=parts)
        assert (built.info.passages, built.removed, built.info.left_out) == (0, 10, 1)
        assert built.removed_files == ((str(folder / "0.jsonl"), 10),)
        assert asyncio.run(open_retriever(index).retrieve("zebra", 5)) == []
        assert verify_index(index).problems == ()
        (folder / "bad.txt").unlink()
        assert update_index([folder], index, parts=parts).info.passages == 0
        records(tmp_path / "n", 1, 10)
        assert update_index([folder], index, parts=parts).info.passages == 10
    assert len(asyncio.run(open_retriever(index).retrieve("zebra", 5))) > 0
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="holds no file to read"):
        update_index([tmp_path / "none"], tmp_path / "fresh")


def test_equal_passages_under_one_id_are_one(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    (folder / "2.jsonl").write_text((folder / "0.jsonl").read_text() * 2)
    built = update_index([folder], index)
    assert (built.info.passages, built.info.bad_records) == (20, 0)
    assert built.remarks == (
        (str(folder / "2.jsonl"), "20 passages are there already, under the same id with the same text: indexed once"),
    )
    (folder / "0.jsonl").unlink()
    assert update_index([folder], index).info.passages == 20
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_different_passages_under_one_id_are_all_found(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    update_index([folder], index)
    line = {"id": "0-3", "text": "x"}
    with (folder / "1.jsonl").open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in (line, line, {**line, "team": "hr"}, {**line, "team": "ops"}))
    built = update_index([folder], index)
    assert (built.info.passages, built.added) == (23, 3)
    (remark,) = (remark for _, remark in built.remarks if "distinct" in remark)
    assert remark.startswith("3 ids that another text has were made distinct, such as '0-3#")
    same = [one for one in content(index) if one.id.startswith("0-3")]
    assert (same[0].id, same[0].text) == ("0-3", "otter word3 zebra")
    assert {one.metadata.get("team") for one in same[1:]} == {None, "hr", "ops"}
    assert_like_fresh(index, [folder], tmp_path / "fresh")
    assert {one.id for one in read_passages([folder])} == {one.id for one in content(index)}
    (folder / "0.jsonl").unlink()  # now the first of the others has the id itself
    update_index([folder], index)
    assert next(one.text for one in content(index) if one.id == "0-3") == "x"
    assert_like_fresh(index, [folder], tmp_path / "fresh")


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
