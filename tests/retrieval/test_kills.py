"""Builds that are killed are gone on from; readers keep what they have; damage is found."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyrag.retrieval.index import Built, open_index, read_info, update_index
from pyrag.retrieval.indexing import staging as workplace
from pyrag.retrieval.indexing import update
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.record_database import Records
from pyrag.retrieval.indexing.verify import verify_index
from pyrag.trace.model import Passage

from .updating import WORDS, assert_like_fresh, records, results

CHILD = """
import sys, time
from pyrag.retrieval.index import update_index

def pause(progress):
    print("going", flush=True)
    time.sleep(0.01)

folder, out = sys.argv[1:]
update_index([folder], out, pause, checkpoint=0)
print("done", flush=True)
"""


def builder(folder: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, folder, out], stdout=subprocess.PIPE, text=True)


def killed(folder: Path, out: Path, after: float) -> bool:
    """Whether a kill that many seconds after the first batch came in time."""
    with builder(folder, out) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        return "done" not in line + process.stdout.read()


def killed_until_done(folder: Path, out: Path, kills: int, seed: int) -> None:
    """Builds, or updates the index that is there, through that many kills; the last build is left alone."""
    chance = random.Random(seed)
    start = shutil.copytree(out, out.with_name("start")) if out.exists() else None
    came = 0
    while came < kills:
        if killed(folder, out, chance.uniform(0, 0.2)):
            came += 1
        else:  # it was faster: the next begins where this one did
            shutil.rmtree(out)
            if start:
                shutil.copytree(start, out)
    with builder(folder, out) as process:
        assert process.communicate(timeout=60)[0].endswith("done\n")


def big_corpus(folder: Path, scale: int) -> Path:
    """One file that takes many batches, many that take one, and some that are bad."""
    records(folder, 8 * scale, 40)
    fill = [" ".join(["filler"] * (n % 41)) for n in range(41)]  # else thousands would score alike
    lines = (
        json.dumps({"id": f"big{n}", "text": f"{WORDS[n % 4]} word{n} {fill[n % 41]}"}) + "\n"
        for n in range(6000 * scale)
    )
    (folder / "big.jsonl").write_text("".join(lines))
    (folder / "bad.jsonl").write_text('{"id": "bad", "text": "zebra"}\n{nope\n')
    old = time.time() - 60
    for path in folder.iterdir():
        os.utime(path, (old, old))  # young files are not trusted, and would be read from the start
    return folder


def check_kills(tmp_path: Path, kills: int, scale: int) -> None:
    folder, index = big_corpus(tmp_path / "n", scale), tmp_path / "ix"
    killed_until_done(folder, index, kills, seed=kills)
    assert_like_fresh(index, [folder], tmp_path / "fresh")
    assert results(index) == results(tmp_path / "fresh")
    assert not list(tmp_path.rglob("*building*"))
    for path in sorted(folder.iterdir())[::2]:  # and an update of it
        text = path.read_text()
        path.write_text(text.replace("lion", "tiger", 1) if "lion" in text else text)
    killed_until_done(folder, index, max(kills // 2, 1), seed=kills + 1)
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_killed_builds_end_like_whole_ones(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=3, scale=1)


@pytest.mark.slow
def test_builds_killed_twenty_times_end_like_whole_ones(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=20, scale=4)


def test_a_resumed_build_goes_on_inside_a_file(tmp_path: Path) -> None:
    folder, index = big_corpus(tmp_path / "n", 1), tmp_path / "ix"
    with builder(folder, index) as process:
        assert process.stdout is not None
        for _ in range(12):
            process.stdout.readline()
        process.kill()
    (checkpoint,) = (tmp_path / ".ix.building").glob("done-*")
    kept = Records(checkpoint)
    assert kept.count("passages") > 0
    before = kept.count("passages")
    kept.close()
    built: Built = update_index([folder], index)
    assert built.added == built.info.passages - before
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_a_build_killed_at_the_switch_leaves_no_obstacle(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 5), tmp_path / "ix"
    left = tmp_path / ".ix.building" / "ready" / "gen-1"
    left.mkdir(parents=True)
    assert update_index([folder], index).info.passages
    assert [one.name for one in tmp_path.iterdir()].count(".ix.building") == 0


def test_an_update_removes_what_a_killed_first_build_left(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 5), tmp_path / "ix"
    update_index([folder], index)
    stale = tmp_path / ".ix.building"
    (stale / "done-3").mkdir(parents=True)
    (stale / "lock").touch()
    update_index([folder], index)
    assert not stale.exists()


def test_an_interrupted_build_keeps_its_checkpoint(tmp_path: Path) -> None:
    folder, index = big_corpus(tmp_path / "n", 1), tmp_path / "ix"
    seen: list[int] = []

    def stop(progress: update.Progress) -> None:
        seen.append(progress.passages)
        if progress.passages > 3000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_index([folder], index, stop, checkpoint=0)
    assert not index.exists()
    built = update_index([folder], index)
    assert 0 < built.added < built.info.passages
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_readers_keep_what_they_have_while_an_index_is_updated(tmp_path: Path) -> None:
    """16 threads that open and search, and one process that updates: nobody ever meets a mixture."""
    folder, index = records(tmp_path / "n", 4, 50), tmp_path / "ix"
    update_index([folder], index)
    stop = threading.Event()
    failures: list[BaseException] = []
    counts: set[int] = set()

    def read() -> None:
        mine = open_index(index)
        first = len(mine.search("zebra", 1000))
        while not stop.is_set():
            try:
                counts.add(len(open_index(index).search("generation", 1000)))
                assert len(mine.search("zebra", 1000)) == first
            except BaseException as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(16)]
    for reader in readers:
        reader.start()
    for turn in range(4):
        lines = ({"id": f"g{n}", "text": f"generation {turn} zebra"} for n in range(turn * 10))
        (folder / "gen.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with builder(folder, index) as process:
            assert process.communicate(timeout=60)[0].endswith("done\n")
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert counts <= {0, 10, 20, 30}


# Verifying


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda gen: next(gen.glob("bm25/*.store")).write_bytes(b"x"), "has changed since it was written"),
        (lambda gen: next(gen.glob("bm25/*.fieldnorm")).unlink(), "is missing"),
        (lambda gen: (gen / "extra").write_text("x"), "extra does not belong here"),
        (lambda gen: (gen / "checksums.json").unlink(), "checksums.json is missing"),
        (lambda gen: (gen / "checksums.json").write_bytes(b'{"\xff": 1}'), "checksums.json is missing or damaged"),
        (lambda gen: (gen / "records.db").write_bytes(b"junk" * 999), "the records cannot be read"),
    ],
)
def test_damage_is_found(tmp_path: Path, damage: Callable[[Path], None], says: str) -> None:
    update_index([records(tmp_path / "n")], tmp_path / "ix")
    generation = tmp_path / "ix" / read_info(tmp_path / "ix").generation
    damage(generation)
    assert any(says in problem for problem in verify_index(tmp_path / "ix").problems)


def test_a_part_that_differs_from_the_records_is_found(tmp_path: Path) -> None:
    update_index([records(tmp_path / "n")], tmp_path / "ix")
    generation = tmp_path / "ix" / read_info(tmp_path / "ix").generation
    writer = Bm25Part().writer(generation / "bm25")
    writer.delete(["0-1"])
    writer.add([Passage("alien", "", "x"), Passage("0-2", "", "twice")])
    writer.commit()
    problems = " ".join(verify_index(tmp_path / "ix").problems)
    assert "the part bm25 lacks 1 passages, such as '0-1'" in problems
    assert "has twice 1 passages, such as '0-2'" in problems
    assert "has and should not 1 passages, such as 'alien'" in problems


def test_a_lock_that_was_cleared_away_is_taken_anew(tmp_path: Path) -> None:
    with workplace.staging_lock(tmp_path / "ix", lambda: None) as work:
        assert (work.folder / "lock").exists()
    assert list(tmp_path.iterdir()) == []
