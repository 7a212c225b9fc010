"""`pyrag chat`: questions that lean on those before them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run

SAID = "Who directed The Seventh Seal?\nWhere was he born?\n\nAnd Wild Strawberries?\n"


def test_answers_follow_the_conversation(pyrag: Run, tmp_path: Path) -> None:
    done = pyrag("chat", "--trace", "t.jsonl", stdin=SAID)
    assert (done.returncode, done.stdout.splitlines()[:2]) == (0, ["Ingmar Bergman", "Uppsala"])
    assert "pyrag: asked as: Where was Ingmar Bergman born?" in done.stderr
    traces = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [one["said"] for one in traces][:2] == ["", "Where was he born?"]


def test_quiet_and_json_print_nothing_else(pyrag: Run) -> None:
    done = pyrag("chat", "--quiet", "--json", stdin=SAID)
    assert done.stderr == ""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["question"], one["said"]) for one in answers][1] == (
        "Where was Ingmar Bergman born?",
        "Where was he born?",
    )
