"""`pyrag sandbox check` in a process of its own: verdicts, exit codes, and what happens when it is cut short."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import COMMAND, Run, environment

ROWS = [
    {"id": "good", "category": "c", "program": "final_answer = answer('q')", "expect": "allowed"},
    {"id": "bad", "category": "c", "program": "import os", "expect": "blocked"},
]
ENDLESS = {"id": "endless", "category": "c", "program": "while True: pass", "expect": "killed"}


def write_suite(path: Path, *rows: dict[str, str]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_a_suite_that_passes(pyrag: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite.jsonl", *ROWS)
    done = pyrag("sandbox", "check", suite)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "both: contained 2/2, benign 1/1, labels 2/2"
    found = [json.loads(line) for line in pyrag("sandbox", "check", suite, "--json").stdout.splitlines()]
    assert [(row["id"], row["verdict"], row["line"]) for row in found] == [
        ("good", "allowed", None),
        ("bad", "blocked", 1),
    ]
    assert all(row["seconds"] > 0 and {"reason", "contained"} <= row.keys() for row in found)


def test_a_suite_that_does_not(pyrag: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite.jsonl", {**ROWS[1], "expect": "allowed"})
    done = pyrag("sandbox", "check", suite)
    assert done.returncode == 1
    assert "(expected allowed)" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": }', "line 2 is not an object"),
        ('{"id": "x"}', "line 2 has no 'program'"),
        ('{"id": "x", "program": 3}', "line 2 is not an object"),
        ('{"id": "x", "program": "", "expect": "alowed"}', "line 2 expects 'alowed': write allowed, blocked"),
    ],
)
def test_a_suite_with_a_wrong_line(pyrag: Run, tmp_path: Path, line: str, said: str) -> None:
    suite = tmp_path / "suite.jsonl"
    suite.write_text(f"{json.dumps(ROWS[0])}\n{line}\n")
    done = pyrag("sandbox", "check", str(suite))
    assert done.returncode == 2
    assert said in done.stderr


def begun(suite: str) -> subprocess.Popen[str]:
    """A check that has printed its first verdict and is busy with an endless program."""
    process = subprocess.Popen(
        [*COMMAND, "sandbox", "check", suite],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests are
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("allowed")
    return process


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_factory_is_one_clear_sentence(tmp_path: Path) -> None:
    process = begun(write_suite(tmp_path / "suite.jsonl", ROWS[0], ENDLESS))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:  # one that dies between two programs is replaced without a word
        with contextlib.suppress(OSError):  # it has just ended
            for factory in children.read_text().split():
                os.kill(int(factory), signal.SIGKILL)
        time.sleep(0.1)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 3
    assert errors.startswith("pyrag: the sandbox process has ended unexpectedly")
    assert len(errors.splitlines()) == 1


def test_ctrl_c_is_one_clear_sentence(tmp_path: Path) -> None:
    process = begun(write_suite(tmp_path / "suite.jsonl", ROWS[0], ENDLESS))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.startswith("pyrag: interrupted")
    assert "Traceback" not in errors
