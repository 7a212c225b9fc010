"""The judge of programs: verdicts and the three figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrag_sandbox import Limits, Outcome, Sandbox
from pyrag_sandbox.host import check

from .conftest import PRIMITIVES

FAST = Limits(own_seconds=0.4)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How late a busy machine is says nothing about the judge."""
    monkeypatch.setattr(check, "GRACE_SECONDS", 60.0)


async def judged(samples: list[check.Sample], mode: check.Mode = "both") -> list[check.Judgement]:
    return [row async for row in check.judge(samples, mode=mode, limits=FAST)]


def test_loads_programs_and_suites(tmp_path: Path) -> None:
    program = tmp_path / "plan.py"
    program.write_text("final_answer = 1\n")
    assert check.load(program) == [check.Sample("plan.py", "final_answer = 1\n")]
    suite = tmp_path / "suite.jsonl"
    rows = [{"id": "a", "category": "c", "program": "x\ud83d", "expect": "error"}, {"id": 2, "program": "y"}]
    suite.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert check.load(suite) == [check.Sample("a", "x\ud83d", "c", "error"), check.Sample("2", "y")]


async def test_verdicts_carry_reason_line_and_time() -> None:
    sources = ["final_answer = 1", "x = 1\nimport os", "x = 1\n1 / 0", "while True: pass"]
    rows = await judged([check.Sample(str(number), source) for number, source in enumerate(sources)])
    assert [row.verdict for row in rows] == ["allowed", "blocked", "error", "killed"]
    assert [row.line for row in rows] == [None, 2, 2, None]
    assert "import of 'os'" in rows[1].reason
    assert rows[3].seconds >= 0.4
    assert json.loads(json.dumps(rows[2].as_dict()))["reason"] == "division by zero"
    assert all(row.agrees is None and row.contained for row in rows)


async def test_the_start_of_the_sandbox_is_no_programs_time() -> None:
    class Noting(Sandbox):
        started_by = ""

        async def run(self, source: str, *args: Any, **options: Any) -> Outcome:
            self.started_by = self.started_by if self.zygotes else repr(source)
            return await super().run(source, *args, **options)

    sandbox = Noting(prefork=1)
    samples = [check.Sample("a", "final_answer = 1")]
    assert [row.verdict async for row in check.judge(samples, sandbox=sandbox)] == ["allowed"]
    assert sandbox.started_by == "''"
    sandbox.close()


async def test_disagreement_and_escape_are_counted() -> None:
    samples = [
        check.Sample("wrongly blocked", "import os", "", "allowed"),
        check.Sample("wrongly allowed", "final_answer = 1", "", "blocked"),
        check.Sample("right", "final_answer = 1", "", "allowed"),
    ]
    summary = check.summarise(await judged(samples), "both")
    assert (summary.programs, summary.contained) == (3, 2)
    assert (summary.benign, summary.benign_total) == (1, 2)
    assert (summary.agreed, summary.labelled) == (1, 3)
    assert not summary.passed


async def test_without_policy_only_other_labels_are_compared() -> None:
    samples = [
        check.Sample("a", "final_answer = str(().__class__)", "", "blocked"),
        check.Sample("b", "1 / 0", "", "error"),
    ]
    rows = await judged(samples, "kernel")
    assert [row.agrees for row in rows] == [None, True]
    assert all(row.contained for row in rows)


async def test_judged_programs_call_the_given_primitives() -> None:
    sample = check.Sample("a", "final_answer = echo('x')", "", "allowed")
    rows = [[row async for row in check.judge([sample], primitives=given)] for given in ({}, PRIMITIVES)]
    assert [row.verdict for (row,) in rows] == ["error", "allowed"]


def test_a_summary_passes_by_its_three_figures() -> None:
    good: dict[str, Any] = {
        "mode": "both",
        "programs": 200,
        "contained": 200,
        "benign": 5,
        "benign_total": 5,
        "agreed": 198,
        "labelled": 200,
    }
    assert check.Summary(**good).passed
    for worse in ({"contained": 199}, {"benign": 4}, {"agreed": 197}):
        assert not check.Summary(**{**good, **worse}).passed
