"""The folder of a run: what is cut off, what is refused, and how a question goes on at its step."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from pyrag._io.files import write_atomic
from pyrag.agents.protocol import Reading
from pyrag.episode.ledger import Ledger, QuestionBudget
from pyrag.errors import BudgetExceededError, ConfigError, DataError, StorageError, UsageError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.reports.summary import summarise
from pyrag.evaluation.runs.batch import QuestionJob, run_jobs, unwritable
from pyrag.evaluation.runs.folder import make_folder, open_run, read_run
from pyrag.evaluation.scoring import ResultRow, score
from pyrag.runtime.journal import FileJournal
from pyrag.trace.codec import from_json
from pyrag.trace.model import Answer, Trace, TraceError, Usage

IDENTITY = {"sets": ["s"], "methods": ["m"], "limit": None, "settings": {"topk": 5}}


def answered(number: int, said: str = "Rome", error: TraceError | None = None) -> tuple[ResultRow, Trace]:
    trace = Trace(f"Question {number}?", Answer(said), error=error, usage=Usage(model_calls=number))
    question = Question(f"q{number}", f"Question {number}?", ("Rome",), type=f"t{number % 2}")
    return score("s", "m", question, trace), trace


def fill(folder: Path, *numbers: int) -> None:
    with open_run(folder, IDENTITY, {"started": "now"}) as writer:
        for number in numbers:
            writer.write(*answered(number))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file", "file is a file: choose a folder with --out"),
        ("file/below", r"cannot write into .*below \(Not a directory"),
    ],
)
def test_where_no_folder_can_be_is_said(place: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=said):
        make_folder(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_takes_no_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """root may write anywhere: what refuses here stands in for a disk that is full or read-only."""

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    make_folder(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(UsageError, match=r"cannot write into .*new \(Read-only file system\): choose another folder"):
        make_folder(tmp_path / "new")


def test_results_and_traces_are_read_back(tmp_path: Path) -> None:
    fill(tmp_path / "run", 1, 2)
    fill(tmp_path / "run", 3)
    run = read_run(tmp_path / "run")
    assert [row.id for row in run.rows] == ["q1", "q2", "q3"]
    assert [run.trace(row).question for row in run.rows] == ["Question 1?", "Question 2?", "Question 3?"]
    assert [row.session for row in run.rows] == [0, 0, 1]
    lines = (tmp_path / "run" / "traces" / "s.m.jsonl").read_bytes().splitlines()
    assert [from_json(line).question for line in lines] == ["Question 1?", "Question 2?", "Question 3?"]


@pytest.mark.parametrize("torn", [b'{"set":"s","method":"m","id":"q9"', b"{", b"\x00\x00"])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    folder = tmp_path / "run"
    fill(folder, 1, 2)
    for name in ("results.jsonl", "traces/s.m.jsonl"):
        with (folder / name).open("ab") as file:
            file.write(torn)
    assert len(read_run(folder).rows) == 2, "a reader passes over it"
    fill(folder, 3)
    run = read_run(folder)
    assert [run.trace(row).question for row in run.rows] == ["Question 1?", "Question 2?", "Question 3?"]


def test_a_trace_without_its_result_is_cut_off(tmp_path: Path) -> None:
    """Killed between the two writes."""
    folder = tmp_path / "run"
    fill(folder, 1, 2)
    results = folder / "results.jsonl"
    results.write_bytes(results.read_bytes().splitlines(keepends=True)[0])
    fill(folder, 2)
    assert len((folder / "traces" / "s.m.jsonl").read_bytes().splitlines()) == 2


def test_a_result_without_its_trace_is_asked_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fill(folder, 1, 2)
    (folder / "traces" / "s.m.jsonl").write_bytes(b"")
    with open_run(folder, IDENTITY, {}) as writer:
        assert writer.rows == {}


def test_a_damaged_trace_is_named_with_its_file(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    path = tmp_path / "traces" / "s.m.jsonl"
    path.write_bytes(b"x" * path.stat().st_size)
    run = read_run(tmp_path)
    with pytest.raises(DataError, match=r"s\.m\.jsonl at byte 0: not a pyrag trace: JSON is .*; restore the file"):
        run.trace(run.rows[0])


@pytest.mark.parametrize(
    "config", [{"run": 1, "sessions": 1}, {"run": {"sets": []}, "sessions": [{}]}, {"run": IDENTITY, "sessions": []}]
)
def test_the_config_of_something_else_is_no_run(tmp_path: Path, config: dict[str, object]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match="is not the config of a run"):
        read_run(tmp_path)


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fill(folder, 1, 2)
    results = folder / "results.jsonl"
    results.write_bytes(b"junk\n" + results.read_bytes())
    with pytest.raises(DataError, match="line 1 is not a result"):
        read_run(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"limit": 20}, "limit none, not 20"),
        ({"methods": ["m", "n"]}, "methods m, not m, n"),
        ({"settings": {"topk": 9}}, "topk 5, not 9"),
        ({"settings": {"topk": 5, "new": 1}}, "new none, not 1"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path: Path, change: dict[str, object], said: str) -> None:
    fill(tmp_path / "run", 1)
    refused = pytest.raises(UsageError, match=f"holds a run with {said}: choose another folder")
    with refused, open_run(tmp_path / "run", {**IDENTITY, **change}, {}):
        pytest.fail("must not open")


def test_settings_bind_from_the_first_result_on(tmp_path: Path) -> None:
    """A first attempt with a wrong option must not block its folder."""
    fill(tmp_path / "run")
    with open_run(tmp_path / "run", {**IDENTITY, "limit": 3}, {}):
        pass
    assert json.loads((tmp_path / "run" / "config.json").read_bytes())["run"]["limit"] == 3


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds files that are not a run"):
        fill(tmp_path)
    with pytest.raises(DataError, match="is not a run of pyrag bench"):
        read_run(tmp_path)


def test_the_latest_result_of_a_question_counts(tmp_path: Path) -> None:
    broken = answered(1, "unknown", TraceError("service", "down", 3))
    with open_run(tmp_path / "run", IDENTITY, {}) as writer:
        writer.write(*broken)
        writer.write(*answered(1))
    (row,) = read_run(tmp_path / "run").rows
    assert row.em == 1.0
    assert broken[0].is_transient


def test_a_summary_does_not_depend_on_the_order_of_results() -> None:
    rows = [answered(n, "Rome" if n % 3 else "Oslo")[0] for n in range(20)]
    forward = summarise(rows, ["s"], ["m"], 20)
    assert forward == summarise(rows[::-1], ["s"], ["m"], 20)
    assert forward.sets[0].by_type.keys() == {"t0", "t1"}


async def test_one_failing_question_does_not_end_a_batch() -> None:
    done: dict[str, str] = {}

    async def ask(job: QuestionJob) -> Trace:
        if job.question.id == "q2":
            raise KeyError("a bug")
        return answered(1)[1]

    jobs = [QuestionJob("s", "m", Question(f"q{n}", "?", ("Rome",))) for n in range(5)]
    await run_jobs(
        jobs,
        ask,
        lambda job, trace: done.update({job.question.id: trace.error.kind if trace.error else "ok"}),
        concurrency=2,
    )
    assert done == {"q0": "ok", "q1": "ok", "q2": "crash", "q3": "ok", "q4": "ok"}


async def test_a_method_that_cannot_run_at_all_ends_it() -> None:
    async def ask(job: QuestionJob) -> Trace:
        return answered(1, error=TraceError("config", "method cot needs a language model", 2))[1]

    with pytest.raises(ConfigError, match="needs a language model"):
        await run_jobs([QuestionJob("s", "m", Question("q", "?", ("x",)))], ask, lambda *_: None, concurrency=2)


class Engine:
    """Counts what it is asked; each reply costs a call."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def reply(self, query: str) -> Reading:
        self.asked.append(query)
        return Reading(f"reply to {query}", known=True, usage=Usage(model_calls=1, prompt_tokens=10))


async def question(path: Path, engine: Engine, queries: list[str], calls: int = 20) -> Ledger:
    journal = FileJournal(path)
    ledger = Ledger(QuestionBudget(calls=calls), journal=journal)
    try:
        for query in queries:
            said = await ledger.call("answer", {"query": query}, lambda q=query: engine.reply(q), Reading)  # type: ignore[misc]
            assert said.text == f"reply to {query}"
    finally:
        journal.close()
    return ledger


async def test_a_question_goes_on_at_its_step_with_its_budget(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    first, second = Engine(), Engine()
    await question(path, first, ["a", "b"])
    with path.open("ab") as file:
        file.write(b'{"at":1.0,"exch')  # killed while it wrote the third
    ledger = await question(path, second, ["a", "b", "c"])
    assert second.asked == ["c"]
    assert ledger.usage == Usage(model_calls=3, prompt_tokens=30)
    assert ledger.elapsed() > 0
    with pytest.raises(BudgetExceededError):
        await question(path, Engine(), ["a", "b", "c", "d"], calls=3)


async def test_equal_requests_are_recalled_once_each(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    await question(path, Engine(), ["a"])
    again = Engine()
    await question(path, again, ["a", "a"])
    assert again.asked == ["a"]


def test_seconds_of_earlier_processes_are_spent(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    entry = {"at": 40.0, "exchange": {"role": "answer", "key": "k", "request": {}, "reply": {}}}
    path.write_text(json.dumps(entry) + "\n")
    journal = FileJournal(path)
    assert Ledger(QuestionBudget(), journal=journal).elapsed() >= 40.0
    journal.discard()
    assert not path.exists()


def test_rows_are_equal_but_for_time_and_place(tmp_path: Path) -> None:
    row = answered(1)[0]
    with open_run(tmp_path / "run", IDENTITY, {}) as writer:
        kept = writer.write(*answered(1))
    assert replace(kept, trace=(0, 0)) == row


def test_a_failed_replacement_leaves_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomic(tmp_path / "summary.json", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space"):
        write_atomic(tmp_path / "summary.json", b"new")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"summary.json": b"old"}


class _Unwritable(dict):  # type: ignore[type-arg]
    def __iter__(self) -> object:
        raise MemoryError

    def items(self) -> object:
        raise MemoryError


def test_a_trace_that_cannot_be_written_leaves_no_result(tmp_path: Path) -> None:
    row, trace = answered(1)
    with open_run(tmp_path / "run", IDENTITY, {"started": "now"}) as writer:
        with pytest.raises(DataError, match="a trace cannot be written"):
            writer.write(row, replace(trace, extensions={None: _Unwritable()}))  # type: ignore[dict-item]
        failed = unwritable(QuestionJob("s", "m", Question("q1", "Question 1?", ("Rome",))), DataError("no"))
        writer.write(replace(row, error=failed.error), failed)
        writer.write(*answered(2))
    run = read_run(tmp_path / "run")
    assert [(one.id, one.error and one.error.message) for one in run.rows] == [("q1", "no"), ("q2", None)]
    assert [run.trace(one).question for one in run.rows] == ["Question 1?", "Question 2?"]
