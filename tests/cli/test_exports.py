"""Runs as tables and as TREC's run files, and completion in shells."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pyrag.evaluation.reports.exports import COLUMNS, ranked, write_csv
from pyrag.evaluation.scoring import ResultRow
from pyrag.trace.model import Answer, Attempt, Step, Trace

from .conftest import Run

BENCH = ("bench", "--sets", "mini-hotpotqa,mini-popqa", "--method", "vanilla,pyrag", "--limit", "2", "--out", "run")


def test_a_run_is_exported_as_table_and_run_files(pyrag: Run, tmp_path: Path) -> None:
    done = pyrag(*BENCH, "--csv", "table.csv", "--trec", "found.trec")
    assert done.returncode == 0, done.stderr
    assert done.stderr.split() == ["table.csv", "found.pyrag.trec", "found.vanilla.trec"]
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    results = [json.loads(line) for line in (tmp_path / "run/results.jsonl").read_text().splitlines()]
    assert tuple(rows[0]) == COLUMNS
    keys = {(row["set"], row["method"], row["id"]): row for row in rows}
    assert len(keys) == len(results) == 8
    for one in results:
        row = keys[one["set"], one["method"], one["id"]]
        assert (float(row["em"]), row["question"], row["answer"]) == (one["em"], one["question"], one["answer"])
    lines = [line.split(" ") for line in (tmp_path / "found.vanilla.trec").read_text().splitlines()]
    assert {len(line) for line in lines} == {6}
    assert {(line[1], line[5]) for line in lines} == {("Q0", "vanilla")}
    assert {line[0] for line in lines} == {f"{one['set']}:{one['id']}" for one in results}
    first = [line for line in lines if line[0] == lines[0][0]]
    assert [int(line[3]) for line in first] == list(range(1, len(first) + 1))
    assert [float(line[4]) for line in first] == sorted((float(line[4]) for line in first), reverse=True)

    again = pyrag("bench", "export", "run", "--trec", "one.trec", "--sets", "mini-popqa", "--method", "vanilla")
    assert again.stderr.split() == ["one.trec"]
    ids = {line.split(" ")[0] for line in (tmp_path / "one.trec").read_text().splitlines()}
    assert ids == {one["id"] for one in results if one["set"] == "mini-popqa"}
    nothing = pyrag("bench", "export", "run")
    assert (nothing.returncode, "--csv FILE or --trec FILE" in nothing.stderr) == (2, True)


@pytest.mark.parametrize(
    "text", ["=1+1", "+A1", "-A1+2", "@SUM(A1)", " =1", "\t=1", "\rx", "＝1+1", '=cmd|" /C calc"!A0']
)
def test_a_formula_becomes_text(text: str, tmp_path: Path) -> None:
    written = _exported(tmp_path, text)
    assert {written[name] for name in ("set", "method", "id", "question", "answer", "gold", "type")} == {f"'{text}"}


@pytest.mark.parametrize("text", ["Ada", "-5", "+49", "-1,234.5", "-3%", "a=b", "", "1-2", "a\r=1"])
def test_other_cells_stay(text: str, tmp_path: Path) -> None:
    written = _exported(tmp_path, text)
    assert {written[name] for name in ("id", "question", "answer", "gold")} == {text}


def _exported(folder: Path, text: str) -> dict[str, str]:
    row = ResultRow(text, text, text, text, (text,), text, True, 1.0, 1.0, 1.0, 0.0, type=text)
    write_csv([row], folder / "table.csv")
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        (written,) = csv.DictReader(file)
    return written


def test_passages_are_ranked_by_their_best_rank() -> None:
    recovered = (Attempt("first", "q"), Attempt("boost", "q", 9, ("c", "e")))
    trace = Trace(
        "q",
        Answer("a"),
        steps=(
            Step(0, "retrieve", "q", passages=("a", "b", "c")),
            Step(1, "sql", "SELECT 1", passages=("shop.db#1",), mode="data"),
            Step(2, "answer", "q", passages=("a",), answer=Answer("x"), attempts=recovered),
            Step(3, "retrieve", "q", passages=("d", "b")),
        ),
    )
    assert ranked(trace) == ["a", "c", "d", "b", "e"]


@pytest.mark.parametrize(("words", "found"), [("pyrag serve", ["serve", "serve-model", "serve-retriever"])])
def test_shells_complete_commands(pyrag: Run, words: str, found: list[str]) -> None:
    done = pyrag(_PYRAG_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="1")
    assert sorted(done.stdout.split()) == found
    assert "_pyrag_completion" in pyrag(_PYRAG_COMPLETE="source_bash").stdout
