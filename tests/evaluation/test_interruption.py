"""Runs that are killed: nothing finished is lost or paid again, and the end is that of an uninterrupted run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pyrag.evaluation.runs.journal import journal_path

from .conftest import ChatServer, bench, start, timeless, write_set

CONCURRENCY = 3


def results(run: Path) -> list[dict[str, object]]:
    path = run / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def summary(run: Path) -> object:
    return timeless(json.loads((run / "summary.json").read_bytes()))


def arguments(chat: ChatServer, data: Path, run: Path, *more: object) -> list[object]:
    llm = f"openai:m@{chat.url}"
    return ["--data", data, "--sets", "stones", "--method", "vanilla", "--recovery", "boost", "--llm", llm,
            "--out", run, "--concurrency", CONCURRENCY, *more]  # fmt: skip


def kill_at(process: subprocess.Popen[str], chat: ChatServer, requests: int, pause: float) -> bool:
    """Kills after some requests and a pause; False if the process was done before."""
    goal = chat.asked.total() + requests
    while chat.asked.total() < goal and process.poll() is None:
        time.sleep(0.002)
    time.sleep(pause)
    ended = process.poll()
    process.kill()
    _, stderr = process.communicate()
    assert not ended, stderr  # it ended by itself, and badly
    return ended is None


def interrupt_often(
    chat: ChatServer, folder: Path, *, count: int, kills: int, seed: int, more: tuple[object, ...] = ()
) -> None:
    """Kills a run at random moments until it has been killed often enough, lets it finish, and compares."""
    rng = random.Random(seed)
    data, run = write_set(folder / "data", count), folder / "run"
    chat.delay = 0.02
    settled: dict[int, int] = {}
    done = 0
    while done < kills:
        process = start(*arguments(chat, data, run, *more), cwd=folder)
        if not kill_at(process, chat, rng.randint(0, 4), rng.random() * 0.1):
            break
        done += 1
        for row in results(run):
            stone = int(str(row["id"])[1:])
            settled.setdefault(stone, chat.asked[stone])
    assert done == kills, "the run ended before it was killed often enough: ask more questions"
    finished = bench(*arguments(chat, data, run, *more), cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert {stone: chat.asked[stone] for stone in settled} == settled, "a finished question was asked again"
    ids = [str(row["id"]) for row in results(run)]
    assert sorted(ids) == sorted({f"q{n}" for n in range(1, count + 1)}), "one line a question"
    paid = chat.asked.copy()
    chat.asked.clear()
    chat.delay = 0.0
    whole = folder / "whole"
    assert bench(*arguments(chat, data, whole, *more), cwd=folder).returncode == 0
    assert summary(run) == summary(whole)
    most = max(chat.asked.values())  # requests of one question
    assert 0 <= paid.total() - chat.asked.total() <= kills * CONCURRENCY * most, "more was lost than was in flight"


def test_a_killed_run_ends_like_an_uninterrupted_one(chat: ChatServer, tmp_path: Path) -> None:
    interrupt_often(chat, tmp_path, count=24, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--resume-steps",), ("--workers", 2)], ids=["plain", "steps", "workers"])
def test_a_run_killed_twenty_times_ends_like_an_uninterrupted_one(
    chat: ChatServer, tmp_path: Path, more: tuple[object, ...]
) -> None:
    interrupt_often(chat, tmp_path, count=120, kills=20, seed=2, more=more)


@pytest.mark.parametrize(("more", "requests"), [((), 4), (("--resume-steps",), 3)], ids=["question", "step"])
def test_a_killed_question_goes_on_at_its_step_on_request(
    chat: ChatServer, tmp_path: Path, more: tuple[object, ...], requests: int
) -> None:
    """Stone 7 is unknown at first, so it is asked about twice; the process dies while the second request hangs."""
    data, run = write_set(tmp_path / "data", 8), tmp_path / "run"
    chat.hang = (7, 2)
    process = start(*arguments(chat, data, run, *more), cwd=tmp_path)
    while chat.asked[7] < 2 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert bench(*arguments(chat, data, run, *more), cwd=tmp_path).returncode == 0
    assert chat.asked[7] == requests
    (row,) = (row for row in results(run) if row["id"] == "q7")
    assert row["calls"] == 2, "what was paid before the kill counts"
    assert not list(run.glob("journal/*"))


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_questions_only(chat: ChatServer, tmp_path: Path) -> None:
    data, run = write_set(tmp_path / "data", 16), tmp_path / "run"
    chat.delay = 0.05
    process = start(*arguments(chat, data, run, "--workers", 2), cwd=tmp_path)
    while len(results(run)) < 3 and process.poll() is None:
        time.sleep(0.005)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1, stderr
    assert "the worker process ended while it answered" in stderr
    assert "other code" not in stderr
    failed = [row for row in results(run) if row["error"]]
    assert 1 <= len(failed) <= CONCURRENCY
    assert len(results(run)) == 16
    assert bench(*arguments(chat, data, run), cwd=tmp_path).returncode == 0, "workers are no part of the settings"
    assert len(results(run)) == 16 + len(failed)


def test_ctrl_c_keeps_what_is_finished(chat: ChatServer, tmp_path: Path) -> None:
    data, run = write_set(tmp_path / "data", 12), tmp_path / "run"
    chat.delay = 0.1
    process = start(*arguments(chat, data, run), cwd=tmp_path)
    while len(results(run)) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    before = len(results(run))
    assert 3 <= before < 12
    chat.delay = 0.0
    assert bench(*arguments(chat, data, run), cwd=tmp_path).returncode == 0
    assert len(results(run)) == 12


def test_a_second_process_on_the_same_run_is_refused(chat: ChatServer, tmp_path: Path) -> None:
    data, run = write_set(tmp_path / "data", 12), tmp_path / "run"
    chat.hang = (7, 1)
    process = start(*arguments(chat, data, run), cwd=tmp_path)
    while not results(run) and process.poll() is None:
        time.sleep(0.01)
    second = bench(*arguments(chat, data, run), cwd=tmp_path)
    process.kill()
    process.communicate()
    chat.released.set()
    assert second.returncode == 2
    assert f"in use by process {process.pid}" in second.stderr


@pytest.mark.slow
def test_questions_whose_service_failed_are_asked_again(chat: ChatServer, tmp_path: Path) -> None:
    data, run = write_set(tmp_path / "data", 8), tmp_path / "run"
    chat.failing = {3, 4}
    first = bench(*arguments(chat, data, run), cwd=tmp_path)
    assert first.returncode == 3
    assert "2 of 8 questions failed" in first.stderr
    assert "this stone is cursed" in first.stderr
    chat.failing = set()
    chat.asked.clear()
    assert bench(*arguments(chat, data, run), cwd=tmp_path).returncode == 0
    assert chat.asked == {3: 1, 4: 1}
    whole = tmp_path / "whole"
    assert bench(*arguments(chat, data, whole), cwd=tmp_path).returncode == 0
    assert summary(run) == summary(whole)


def test_the_journal_of_an_answered_question_is_dropped(chat: ChatServer, tmp_path: Path) -> None:
    """As a kill between a question's result and the end of its journal leaves it."""
    data, run = write_set(tmp_path / "data", 2), tmp_path / "run"
    given = arguments(chat, data, run, "--resume-steps")
    assert bench(*given, cwd=tmp_path).returncode == 0
    asked = chat.asked.copy()
    journal_path(run, "stones", "vanilla", "q1").write_text("")
    assert bench(*given, cwd=tmp_path).returncode == 0
    assert not list(run.glob("journal/*"))
    assert chat.asked == asked
