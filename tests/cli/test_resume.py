"""`--resume`: a run over many documents that goes on after a kill, a limit or a failure, without paying twice."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, Run, environment
from tests.server.conftest import ModelServer, serving

DOCUMENTS, IN_FLIGHT = 40, 4
PROGRAM = """
rows = each(documents(), "Who founded it?")
final_answer = {row.item: row.value for row in rows}
"""
VALUE = {f"Firm {number}": f"Founder {number}" for number in range(DOCUMENTS)}


@dataclass
class Founders(ModelServer):
    """Answers by the number of the firm, and counts the questions on each; `hold` stops it after so many replies."""

    hold: int = DOCUMENTS
    asked: Counter[str] = field(default_factory=Counter)
    held: threading.Event = field(default_factory=threading.Event)

    def reply(self, body: dict[str, Any]) -> str:
        firm = re.findall(r"Firm (\d+) is", body["messages"][-1]["content"])[-1]
        self.asked[firm] += 1
        return f"<answer>Founder {firm}</answer> [1]"

    def refusal(self, _: dict[str, Any]) -> tuple[int, Any] | None:
        if len(self.bodies) <= self.hold:
            return None
        self.held.set()
        return 400, {"error": {"message": "no more"}}


@pytest.fixture
def founders() -> Iterator[Founders]:
    script = Founders()
    script.refuse = script.refusal
    with serving(script) as server:
        assert isinstance(server, Founders)
        yield server


@pytest.fixture
def command(pyrag: Run, tmp_path: Path, founders: Founders) -> list[str]:
    (tmp_path / "docs").mkdir()
    for number in range(DOCUMENTS):
        (tmp_path / f"docs/{number:02}.md").write_text(f"# Firm {number}\n\nFirm {number} is old.\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert pyrag("index", "docs", "--out", "ix").returncode == 0
    return ["run", "program.py", "--index", "ix", "--llm", f"openai:tiny@{founders.url}", "--resume", "run.jsonl"]


def test_killed_run_loses_at_most_the_calls_in_flight(command: list[str], founders: Founders, tmp_path: Path) -> None:
    env = environment(PYRAG_MAX_IN_FLIGHT=str(IN_FLIGHT))
    founders.refuse = lambda body: founders.held.set() if len(founders.bodies) == DOCUMENTS // 2 else None
    process = subprocess.Popen([*COMMAND, *command], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    assert founders.held.wait(60)
    process.kill()
    process.wait(60)
    before = founders.asked.total()
    assert (tmp_path / "run.jsonl").stat().st_mode & 0o077 == 0
    done = subprocess.run([*COMMAND, *command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == VALUE
    assert before < founders.asked.total() <= DOCUMENTS + IN_FLIGHT
    assert not (tmp_path / "run.jsonl").exists(), "a complete run needs no file"


def test_run_at_a_limit_goes_on_with_a_higher_one(
    pyrag: Run, command: list[str], founders: Founders, tmp_path: Path
) -> None:
    first = pyrag(*command, "--max-calls", "15")
    assert "15 of 40 documents answered, 0 unknown, 25 not reached" in first.stderr
    assert (tmp_path / "run.jsonl").exists()
    second = pyrag(*command, "--max-calls", "40")
    assert json.loads(second.stdout) == VALUE
    assert founders.asked == Counter(map(str, range(DOCUMENTS)))


def test_failed_service_is_asked_again(pyrag: Run, command: list[str], founders: Founders) -> None:
    founders.hold = 10
    one_at_a_time = {"PYRAG_MAX_IN_FLIGHT": "1"}  # replies beside a failed call are lost with it
    first = pyrag(*command, **one_at_a_time)
    assert first.returncode != 0
    assert founders.asked.total() == 10
    founders.hold = 10_000
    second = pyrag(*command, **one_at_a_time)
    assert json.loads(second.stdout) == VALUE
    assert founders.asked == Counter(map(str, range(DOCUMENTS)))


def test_file_of_another_run_is_refused(pyrag: Run, command: list[str], tmp_path: Path) -> None:
    assert pyrag(*command, "--max-calls", "5").returncode == 0
    (tmp_path / "program.py").write_text(PROGRAM.replace("Who", "What man"))
    other = pyrag(*command)
    assert (other.returncode, other.stdout) == (2, "")
    assert "run.jsonl belongs to another run" in other.stderr
    (tmp_path / "notes.txt").write_text("My notes.\n")
    (tmp_path / "notes.txt").chmod(0o644)
    foreign = pyrag(*command[:-1], "notes.txt")
    assert foreign.returncode == 2
    assert "notes.txt is not the file of a run that can be resumed" in foreign.stderr
    assert (tmp_path / "notes.txt").read_text() == "My notes.\n"
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o644


def test_question_over_all_documents_goes_on(pyrag: Run, command: list[str], founders: Founders) -> None:
    question = ["ask", "For each document, who founded it?", "--profile", "corpus", "--plan-llm", "embedded"]
    options = [*command[2:], "--json"]
    first = json.loads(pyrag(*question, "--decompose-llm", "embedded", *options, "--max-calls", "20").stdout)
    assert first["complete"] is False
    second = json.loads(pyrag(*question, "--decompose-llm", "embedded", *options).stdout)
    assert second["complete"] is True
    assert {row["item"]: row["value"] for row in second["value"]} == VALUE
    assert founders.asked == Counter(map(str, range(DOCUMENTS)))
