"""Index folders: what is in them, what is refused, and that failures and kills leave what was there before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ConfigError, DataError, PyRAGError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.index import open_index, read_info, update_index
from pyrag.retrieval.indexing import build as module
from pyrag.retrieval.indexing.update import IndexProgress
from pyrag.trace.model import Passage


def corpus(path: Path, count: int = 20, word: str = "zebra") -> Path:
    records = ({"id": f"p{n}", "title": f"Title {n}", "text": f"{word} number{n}"} for n in range(count))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def found(index: Path, word: str = "zebra") -> list[str]:
    return [passage.id for passage in open_index(index).search(word, 1000)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*building")]


def test_build_open_search(tmp_path: Path) -> None:
    source = corpus(tmp_path / "c.jsonl", 1200)
    seen: list[IndexProgress] = []
    info = update_index([source], tmp_path / "deep/er/ix", progress=seen.append).info
    assert (info.kind, info.passages, info.files, info.sources, info.format) == ("bm25", 1200, 1, (str(source),), 3)
    assert [one.passages for one in seen] == [1000, 1200]
    assert seen[0].done < seen[0].total == seen[-1].done == source.stat().st_size
    assert read_info(tmp_path / "deep/er/ix") == info
    index = open_index(tmp_path / "deep/er/ix")
    assert len(index) == 1200
    (best,) = index.search("number77", 5)
    start, end = best.start or 0, best.end
    assert best == Passage("p77", "Title 77", "zebra number77", best.score, str(source), start=start, end=end)
    assert json.loads(source.read_text()[start:end])["id"] == "p77"
    assert best.score > 0
    assert not leftovers(tmp_path / "deep/er")


def test_an_index_can_be_moved(tmp_path: Path) -> None:
    update_index([corpus(tmp_path / "c.jsonl")], tmp_path / "ix")
    before = open_index(tmp_path / "ix").search("zebra number7", 5)
    (tmp_path / "ix").rename(tmp_path / "elsewhere")
    assert open_index(tmp_path / "elsewhere").search("zebra number7", 5) == before


def test_rebuilding_replaces_and_open_readers_keep_the_old(tmp_path: Path) -> None:
    update_index([corpus(tmp_path / "c.jsonl")], tmp_path / "ix")
    old = open_index(tmp_path / "ix")
    update_index([corpus(tmp_path / "d.jsonl", 3, "lion")], tmp_path / "ix")
    assert len(found(tmp_path / "ix", "lion")) == 3
    assert found(tmp_path / "ix", "zebra") == []
    assert len(old.search("zebra", 100)) == 20
    assert len(list((tmp_path / "ix").iterdir())) == 2


def test_readers_never_meet_a_gap_while_it_is_replaced(tmp_path: Path) -> None:
    sources = [corpus(tmp_path / f"{n}.jsonl", n) for n in (5, 6)]
    update_index(sources[:1], tmp_path / "ix")
    stop = threading.Event()
    counts: set[int] = set()
    failures: list[Exception] = []

    def read() -> None:
        while not stop.is_set():
            try:
                counts.add(len(found(tmp_path / "ix")))
            except Exception as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(5):
        update_index([sources[turn % 2]], tmp_path / "ix")
    stop.set()
    reader.join()
    assert not failures
    assert counts <= {5, 6}


def test_an_empty_folder_or_a_link_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "ix").mkdir()
    update_index([corpus(tmp_path / "c.jsonl")], tmp_path / "ix")
    (tmp_path / "link").symlink_to("ix")
    update_index([corpus(tmp_path / "c.jsonl", 2)], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(found(tmp_path / "ix")) == 2


def test_a_folder_of_other_files_is_not_touched(tmp_path: Path) -> None:
    source = corpus(tmp_path / "c.jsonl")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("x")
    with pytest.raises(DataError, match="mine holds files that are not a pyrag index: choose another folder"):
        update_index([source], tmp_path / "mine")
    with pytest.raises(DataError, match=r"c\.jsonl is a file: choose a folder"):
        update_index([source], source)
    assert names(tmp_path / "mine") == ["thesis.txt"]


@pytest.mark.parametrize("failing", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("existing", [True, False])
def test_an_exception_in_the_middle_leaves_everything_as_it_was(
    tmp_path: Path, failing: type[BaseException], existing: bool
) -> None:
    source = corpus(tmp_path / "c.jsonl", 800)
    if existing:
        update_index([corpus(tmp_path / "old.jsonl", 2)], tmp_path / "ix")

    def progress(_: IndexProgress) -> None:
        raise failing

    with pytest.raises(failing):
        update_index([source], tmp_path / "ix", progress)
    assert not leftovers(tmp_path)
    assert len(found(tmp_path / "ix")) == 2 if existing else not (tmp_path / "ix").exists()


def test_a_broken_file_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "c.jsonl"
    source.write_text("{broken\n" * 800)
    with pytest.raises(DataError, match=r"c\.jsonl line 1: not JSON"):
        update_index([source], tmp_path / "ix")
    assert names(tmp_path) == ["c.jsonl"]


@pytest.mark.parametrize("step", ["write_info", "write_checksums"])
def test_a_full_disk_at_the_end(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    update_index([corpus(tmp_path / "old.jsonl", 2)], tmp_path / "ix")
    monkeypatch.setattr(module, step, full)
    with pytest.raises(PyRAGError, match=r"could not be written \(No space left on device\): make room"):
        update_index([corpus(tmp_path / "c.jsonl")], tmp_path / "ix")
    assert len(found(tmp_path / "ix")) == 2
    assert not leftovers(tmp_path)


CHILD = """
import resource, signal, sys, time
from pathlib import Path
from pyrag.errors import PyRAGError
from pyrag.retrieval.index import update_index

def pause(count):
    print("building", flush=True)
    for _ in range(300):  # a signal that comes just before a sleep is seen after it
        time.sleep(0.1)

what, source, out = sys.argv[1:]
if what == "limit":  # a file that may not grow is the nearest thing to a full disk that a test can make
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    update_index([source], out, pause if what == "pause" else None)
except PyRAGError as error:
    print(error)
except KeyboardInterrupt:
    print("interrupted")
"""


def child(what: str, source: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, what, source, out], stdout=subprocess.PIPE, text=True)


def test_tantivys_own_write_errors_become_one_sentence(tmp_path: Path) -> None:
    with child("limit", corpus(tmp_path / "c.jsonl", 20_000), tmp_path / "ix") as process:
        output = process.communicate(timeout=120)[0]
    assert "could not be written" in output
    assert output.count("\n") == 1
    assert names(tmp_path) == ["c.jsonl"]


@pytest.mark.parametrize("existing", [True, False])
def test_a_killed_build_leaves_the_old_index_intact(tmp_path: Path, existing: bool) -> None:
    source = corpus(tmp_path / "c.jsonl", 600)
    if existing:
        update_index([corpus(tmp_path / "old.jsonl", 2)], tmp_path / "ix")
    with child("pause", source, tmp_path / "ix") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "building\n"
        process.kill()
    assert len(leftovers(tmp_path)) == 1
    assert len(found(tmp_path / "ix")) == 2 if existing else not (tmp_path / "ix").exists()
    update_index([source], tmp_path / "ix")
    assert not leftovers(tmp_path)
    assert len(found(tmp_path / "ix")) == 600


def test_an_interrupted_build_cleans_up_itself(tmp_path: Path) -> None:
    with child("pause", corpus(tmp_path / "c.jsonl", 600), tmp_path / "ix") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120)[0] == "interrupted\n"
    assert names(tmp_path) == ["c.jsonl"]


def test_a_second_build_of_a_folder_waits_for_the_first(tmp_path: Path) -> None:
    waited: list[bool] = []
    with child("pause", corpus(tmp_path / "c.jsonl", 1600), tmp_path / "ix") as process:
        assert process.stdout is not None
        process.stdout.readline()

        def on_wait() -> None:
            waited.append(True)
            assert len(leftovers(tmp_path)) == 1
            process.kill()

        update_index([corpus(tmp_path / "d.jsonl", 3)], tmp_path / "ix", on_wait=on_wait)
    assert waited == [True]
    assert len(found(tmp_path / "ix")) == 3
    assert not leftovers(tmp_path)


def damage(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        meta = json.loads((folder / "pyrag-index.json").read_text())
        change(meta)
        (folder / "pyrag-index.json").write_text(json.dumps(meta))

    return apply


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "pyrag-index.json").unlink(), "is not a pyrag index: name a folder"),
        (lambda folder: (folder / "pyrag-index.json").write_text("{"), "cannot be read .*: build it again"),
        (damage(lambda meta: meta.update(format=9)), "version 9.3 and this pyrag reads version 3.3: build it again"),
        (damage(lambda meta: meta.update(kind="graph")), "is of kind 'graph'"),
        (damage(lambda meta: meta.update(generation="gen-0")), "is damaged"),
        (lambda folder: next(folder.glob("gen-*/bm25/meta.json")).write_text("{}"), "is damaged"),
        (lambda folder: next(folder.glob("gen-*/bm25/*.store")).unlink(), "is damaged"),
    ],
)
def test_what_cannot_be_opened_says_why(tmp_path: Path, change: Callable[[Path], None], says: str) -> None:
    update_index([corpus(tmp_path / "c.jsonl")], tmp_path / "ix")
    change(tmp_path / "ix")
    with pytest.raises(DataError, match=says):
        open_index(tmp_path / "ix")


def test_a_missing_index_says_how_to_build_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no index at .*: build one with pyrag index PATH\.\.\. --out "):
        open_index(tmp_path / "ix")
    with pytest.raises(DataError, match="is not a pyrag index"):
        open_index(corpus(tmp_path / "c.jsonl"))


@pytest.mark.parametrize("spec", ["faq:Faq", "my.module:Search", "qdrnt:pages"])
def test_an_unknown_retriever_names_the_known_ones(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"neither an index folder nor a known retriever: .*qdrant:.*entry point"):
        open_retriever(spec)
