"""`pyrag chat`: questions that lean on those before them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("end", ["exit", "quit", "QUIT", "/exit"])
def test_a_command_ends_the_conversation(pyrag: Run, end: str) -> None:
    done = pyrag("chat", stdin=f"/help\n/nothing\n {end} \nWho directed Gravity?\n")
    assert (done.returncode, done.stdout) == (0, "")
    told, unknown = done.stderr.splitlines()
    assert all(word in told for word in ("exit", "quit", "Ctrl-D", "/help"))
    assert unknown.startswith("pyrag: there is no command /nothing: ")


def test_a_question_may_hold_commands(pyrag: Run) -> None:
    done = pyrag("chat", "--quiet", stdin="Who directed Gravity, quit or exit?\n")
    assert len(done.stdout.splitlines()) == 1
