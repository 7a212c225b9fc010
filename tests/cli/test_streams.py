"""What a user's terminal and locale may be: nothing of it ends a command."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from rich.text import Text

from pyrag.cli.views.live import SafeConsole
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
        (b"\xff", 2, b"", b"pyrag: 1 of 1 question failed, the first of them in line 1"),
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
    assert done.stderr.startswith(b"pyrag: the question holds bytes that are not UTF-8 text")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [("<&-", "ask -", 0), (">&-", f"ask '{QUESTION}'", 0), ("2>&-", "ask Who --llm bogus", 2)],
)
def test_a_closed_stream_ends_nothing(tmp_path: Path, closed: str, arguments: str, code: int) -> None:
    line = f"{shlex.join(COMMAND)} {arguments} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == code, done.stderr


def test_passages_cannot_act_on_the_terminal(pyrag: Run, tmp_path: Path) -> None:
    text = "Lantern Street is a 1987 film directed by Ada Quill\x1b]52;c;ZXZpbA==\x07\x1b[2J."
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "1", "title": "Lantern Street\x1b]0;mine\x07", "text": text}))
    assert pyrag("index", "a.jsonl", "--out", "ix").returncode == 0
    assert pyrag("ask", "Who directed Lantern Street?", "--index", "ix", "--trace", "t.json").returncode == 0
    for command in (("index", "search", "ix", "lantern"), ("trace", "show", "t.json")):
        shown = pyrag(*command).stdout
        assert re.search(r"Lantern Street[ \u200b]?\]0;mine", shown)
        assert not set(shown) & {"\x1b", "\x07"}


def test_a_terminal_gets_our_colours_and_no_others() -> None:
    out = io.StringIO()
    SafeConsole(file=out, force_terminal=True, color_system="standard", width=80, legacy_windows=False).print(
        Text("a\x1b[31mb\r\x9b2J", style="bold")
    )
    assert out.getvalue() == "\x1b[1ma[31mb2J\x1b[0m\n"
