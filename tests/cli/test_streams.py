"""What a user's terminal and locale may be: nothing of it ends a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Run, environment

QUESTION = "Who directed Gravity?"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [C_LOCALE, {"PYTHONIOENCODING": "ascii"}], ids=["C", "ascii"])
def test_what_the_locale_cannot_show_is_escaped(pyrag: Run, locale: dict[str, str]) -> None:
    assert pyrag("ask", QUESTION, **locale).stdout == "Alfonso Cuar\\u00f3n\n"
    assert json.loads(pyrag("ask", QUESTION, "--json", **locale).stdout)["answer"] == "Alfonso Cuarón"
    assert pyrag("ask", "--help", **locale).returncode == 0


@pytest.mark.parametrize(
    ("line", "code", "shown", "told"),
    [
        ("Who directed “Gravity”?".encode(), 0, b'"question":"Who directed \\u201cGravity\\u201d?"', b""),
        (b"\xff", 2, b"", b"pyrag: the questions on stdin are not UTF-8 text"),
    ],
)
def test_questions_are_read_as_utf8_in_the_c_locale(
    tmp_path: Path, line: bytes, code: int, shown: bytes, told: bytes
) -> None:
    command, env = [*COMMAND, "ask", "-", "--json"], environment(**C_LOCALE)
    done = subprocess.run(command, input=line + b"\n", capture_output=True, cwd=tmp_path, env=env, timeout=60)
    assert shown in done.stdout
    assert done.stderr.startswith(told)
    assert done.returncode == code


def test_bytes_that_are_no_text_are_one_sentence(tmp_path: Path) -> None:
    command = [*(part.encode() for part in COMMAND), b"ask", b"Who is \xff?", b"--json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(b"pyrag: the question holds bytes that are no text")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [("<&-", "ask -", 0), (">&-", f"ask '{QUESTION}'", 0), ("2>&-", "ask Who --llm bogus", 2)],
)
def test_a_closed_stream_ends_nothing(tmp_path: Path, closed: str, arguments: str, code: int) -> None:
    line = f"{' '.join(COMMAND)} {arguments} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == code, done.stderr
