"""The experience library's file: operations, transactions, readers beside a writer, kills, and files that are none."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.methods.hera.experience import library as library_module
from pyrag.methods.hera.experience.entry import MAX_INSIGHT
from pyrag.methods.hera.experience.library import EntryDraft, Library
from pyrag.methods.hera.topology import Characterisation

BRIDGE = Characterisation("bridge", "medium", "city")
COMPARISON = Characterisation("comparison", "easy", "yes/no")
UPDATE_AND_HANG = """
import sys, time
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.topology import Characterisation
with Library.open(sys.argv[1], write=True).update() as draft:
    draft.used([1], succeeded=True)
    draft.prune([2])
    for number in range(300):
        draft.add(Characterisation("bridge"), f"insight {number} " + "x" * 400)
    draft.record("step 2")
    print("in the middle", flush=True)
    time.sleep(60)
"""


def _prune_and_fail(draft: EntryDraft) -> None:
    draft.prune([1, 2])
    draft.record("lost")
    draft.add(BRIDGE, "")


def _fill(draft: EntryDraft) -> None:
    for number in range(200):
        draft.add(BRIDGE, f"Insight {number} " + "x" * 500)


def _read_all(path: Path) -> None:
    with Library.open(path) as library:
        library.entries()
        library.records()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "experience.db"
    with Library.open(path, write=True) as library, library.update() as draft:
        draft.add(BRIDGE, "Resolve the person first, then ask where that person was born.")
        draft.add(COMPARISON, "Retrieve for both entities side by side and compare in the conclude agent.")
        draft.record("step 1")
    return path


def test_others_see_an_update_only_when_whole(path: Path) -> None:
    with Library.open(path) as reader, Library.open(path, write=True) as writer:
        before = reader.entries()
        with writer.update() as draft:
            new = draft.add(BRIDGE, "Validate the passages before answering.")
            draft.used([1], succeeded=True)
            assert draft.get(1) != before[0]  # the draft reads what it wrote
            assert reader.entries() == before
        assert [one.id for one in reader.entries()] == [1, 2, new.id]
        assert reader.get(1).utility == 1  # type: ignore[union-attr]


def test_an_update_that_raises_leaves_everything_as_it_was(path: Path) -> None:
    with Library.open(path, write=True) as library:
        before = library.entries()
        with pytest.raises(DataError, match="shorten it"), library.update() as draft:
            _prune_and_fail(draft)
        assert (library.entries(), library.records()) == (before, ["step 1"])
        with library.update() as draft:  # and the library can be updated again
            draft.prune([1])
        assert [one.id for one in library.entries()] == [2]


def test_a_killed_update_leaves_the_state_before_it(path: Path) -> None:
    with Library.open(path) as library:
        before = library.entries()
    child = subprocess.Popen([sys.executable, "-c", UPDATE_AND_HANG, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "in the middle"
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    finally:
        child.kill()
        child.stdout.close()  # type: ignore[union-attr]
    with Library.open(path, write=True) as library:
        assert (library.entries(), library.records()) == (before, ["step 1"])
        with library.update() as draft:  # the lock died with the process
            draft.add(BRIDGE, "Another insight.")
        assert len(library.entries()) == 3


def test_merging_keeps_one_entry_with_the_counts_of_all(path: Path) -> None:
    with Library.open(path, write=True) as library:
        with library.update() as draft:
            second = draft.add(BRIDGE, "Ask for the birthplace of the person found.", utility=2, uses=3)
            draft.used([1], succeeded=False)
            merged = draft.merge([1, second.id], "Find the person, then that person's birthplace.")
        assert (merged.id, merged.utility, merged.uses) == (1, 2, 4)
        assert library.get(1) == merged
        assert library.get(second.id) is None


def test_ids_are_never_given_again(path: Path) -> None:
    with Library.open(path, write=True) as library:
        with library.update() as draft:
            draft.prune([2])
        with library.update() as draft:
            assert draft.add(BRIDGE, "A third insight.").id == 3


def test_a_full_library_drops_what_helped_least_often(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "MAX_ENTRIES", 2)
    with Library.open(path, write=True) as library:
        with library.update() as draft:
            draft.used([1], succeeded=True)
            draft.used([2], succeeded=False)
            new = draft.add(BRIDGE, "A third insight.")
        assert [one.id for one in library.entries()] == [1, new.id]


def test_least_helpful_is_by_share_of_uses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "MAX_ENTRIES", 4)
    with Library.open(path, write=True) as library, library.update() as draft:
        for utility, uses in ((2, 9), (0, 3), (9, 30), (1, 1)):
            draft.add(BRIDGE, f"It helped {utility} of {uses} times.", utility=utility, uses=uses)
        left = sorted(one.success_rate for one in draft.entries())
        assert left == pytest.approx([10 / 32, 1 / 2, 1 / 2, 2 / 3])


def test_a_full_disk_is_said_and_leaves_the_state_before(path: Path) -> None:
    with Library.open(path, write=True) as library:
        before = library.entries()
        library._db.execute("PRAGMA max_page_count = 1")  # no more than there are
        with pytest.raises(DataError, match=r"disk is full.*: make room on its disk"), library.update() as draft:
            _fill(draft)
        assert library.entries() == before


def test_concurrent_processes_make_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "BUSY_SECONDS", 10.0)
    together = threading.Barrier(8, timeout=120)

    def add(program_run: int) -> None:
        together.wait()
        with Library.open(tmp_path / f"{program_run}.db", write=True) as library, library.update() as draft:
            draft.add(BRIDGE, "Resolve the person first.")

    rounds = range(20)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, [program_run for program_run in rounds for _ in range(8)]))
    for program_run in rounds:
        with Library.open(tmp_path / f"{program_run}.db") as library:
            assert len(library.entries()) == 8
            assert library._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("insight", ["", "  \n", "x" * (MAX_INSIGHT + 1)])
def test_insights_have_a_length(path: Path, insight: str) -> None:
    with Library.open(path, write=True) as library:
        with pytest.raises(DataError, match="shorten it"), library.update() as draft:
            draft.add(BRIDGE, insight)
        assert len(library.entries()) == 2


def _wrong_files(tmp_path: Path) -> list[tuple[Path, str]]:
    text, empty, other, newer = (tmp_path / name for name in ("text.db", "empty.db", "other.db", "newer.db"))
    text.write_text("this is no database, however long it is" * 100)
    empty.touch()
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE things (id INTEGER)")
    db.close()
    with sqlite3.connect(newer) as db:
        db.execute(f"PRAGMA application_id = {library_module.APPLICATION_ID}")
        db.execute("PRAGMA user_version = 99")
    db.close()
    return [
        (tmp_path / "missing.db", "there is no such file"),
        (tmp_path, "it is a folder"),
        (text, "not a database"),
        (empty, "not an experience library"),
        (other, "not an experience library"),
        (newer, "version 99; this pyrag reads version 1"),
    ]


def test_what_is_no_library_is_said_in_one_sentence(tmp_path: Path) -> None:
    for path, reason in _wrong_files(tmp_path):
        with pytest.raises(DataError, match=reason) as caught:
            Library.open(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_damaged_library_is_an_error_not_a_traceback(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(DataError, match=str(path)):
        _read_all(path)


def test_two_writers_wait_for_each_other(path: Path) -> None:
    code = (
        "import sys\n"
        "from pyrag.methods.hera.experience.library import Library\n"
        "with Library.open(sys.argv[1], write=True) as library:\n"
        "    for number in range(25):\n"
        "        with library.update() as draft:\n"
        "            draft.used([1], succeeded=True)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [one.wait(timeout=60) for one in writers] == [0, 0, 0]
    with Library.open(path) as library:
        assert library.get(1).uses == 75  # type: ignore[union-attr]
