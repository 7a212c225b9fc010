"""Questions on stdin: a line that cannot be read or answered fails alone, and is named."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
from pathlib import Path
from typing import IO

import pytest

from pyrag.cli.ask.stdin import LineReader, QuestionLine, question_lines
from tests.cli.conftest import COMMAND, Run, environment

FIRST, SECOND = "Who directed Gravity?", "Who is older, Jed Hoyer or John William Henry II?"
ANSWERS = ["Alfonso Cuarón", "John William Henry II"]


def ask(folder: Path, stdin: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [*COMMAND, "ask", "-", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=folder, env=environment(), timeout=120)


@pytest.mark.parametrize("bad", [b"\xff", b"Who is \xe9mile?", b"\xed\xa0\x80", b"x" * 10_000])
def test_a_bad_line_fails_alone_with_its_number(tmp_path: Path, bad: bytes) -> None:
    done = ask(tmp_path, f"{FIRST}\n".encode() + bad + f"\n\n{SECOND}\n".encode())
    assert done.stdout.decode().splitlines() == [ANSWERS[0], "", ANSWERS[1]]
    first, last = done.stderr.decode().splitlines()
    assert first.startswith("pyrag: line 2: the question ")
    assert last == "pyrag: 1 of 3 questions failed, the first of them in line 2"
    assert done.returncode == 2


def test_json_names_lines_and_stays_json(tmp_path: Path) -> None:
    done = ask(tmp_path, f"\n{FIRST}\n".encode() + b"\xff?\n" + SECOND.encode(), "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["line"] for one in found] == [2, 3, 4]
    assert [one["error"] and one["error"]["kind"] for one in found] == [None, "usage", None]
    assert done.stderr.decode() == "pyrag: 1 of 3 questions failed, the first of them in line 3\n"
    assert done.returncode == 2


def test_a_trace_file_survives_a_bad_line(pyrag: Run, tmp_path: Path) -> None:
    assert ask(tmp_path, b"\xff\n" + FIRST.encode(), "--trace", "traces.jsonl").returncode == 2
    shown = pyrag("trace", "show", "traces.jsonl")
    assert shown.returncode == 0
    assert ANSWERS[0] in shown.stdout


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_marks_and_line_ends_of_all_systems_are_read(encoding: str, end: str) -> None:
    data = end.join(["Who wrote Émile?", "", " 2nd? ", "3rd?"]).encode(encoding)
    for size in (1, 2, len(data)):
        lines, found = LineReader(), []
        for start in range(0, len(data), size):
            found += list(lines.feed(data[start : start + size]))
        found += list(lines.feed(b"", final=True))
        assert [(line.number, line.text) for line in found] == [(1, "Who wrote Émile?"), (3, "2nd?"), (4, "3rd?")]


def test_a_line_without_end_is_not_kept_whole() -> None:
    lines = LineReader()
    for _ in range(40):
        assert list(lines.feed(b"x" * 65536)) == []
    (line,) = lines.feed(b"", final=True)
    assert len(line.text) < 2 * 65536 + (1 << 20)


def test_nothing_on_stdin_is_said(tmp_path: Path) -> None:
    done = ask(tmp_path, b"\n \n")
    assert (done.stdout, done.stderr) == (b"", b"pyrag: stdin holds no question: write one on each line\n")
    assert done.returncode == 0


def test_each_answer_comes_before_the_next_question(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "ask", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=tmp_path, env=environment(), bufsize=1,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    for question, answer in zip([FIRST, SECOND], ANSWERS, strict=True):
        process.stdin.write(question + "\n")
        assert process.stdout.readline() == answer + "\n"
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_questions_are_typed_at_a_terminal(tmp_path: Path) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "ask", "-"], stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env=environment(),
    )  # fmt: skip
    os.close(child)
    assert process.stdout is not None
    os.write(parent, FIRST.encode() + b"\n")
    assert process.stdout.readline() == ANSWERS[0] + "\n"
    os.write(parent, b"\x04")
    _, told = process.communicate(timeout=60)
    os.close(parent)
    assert told == "pyrag: reading questions from the terminal, one per line; end with Ctrl-D\n"
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="an endless file")
def test_a_line_without_end_can_be_interrupted() -> None:
    async def read(stream: IO[str]) -> list[QuestionLine]:
        async with asyncio.timeout(0.05):
            return [line async for line in question_lines(stream)]

    with Path("/dev/zero").open() as stream, pytest.raises(TimeoutError):
        asyncio.run(read(stream))
