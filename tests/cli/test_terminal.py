"""Texts of strangers on a terminal, in a pipe and in messages: nothing in them acts, nothing goes around the filter."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyrag.cli.views.terminal import SafeStream, json_line, one_line, printable, raw_stream
from tests.cli.conftest import COMMAND, Run, environment, in_terminal
from tests.server.conftest import PROGRAM, ModelServer, server

__all__ = ["server"]

# A title set, a clipboard written, a screen cleared, a line overwritten, C1 controls, and writing turned around.
EVIL = "a\x1b]0;mine\x07b\x1b]52;c;ZXZpbA==\x07c\x1b[2Jd\re\x08f\x9b31mg\x85h\u202ei\u2066j\u200fk\u061cl\u2028m"
TAME = "a]0;mineb]52;c;ZXZpbA==c[2Jdef31mghijklm"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n)")  # colours, cursor movements, a terminal's line ends
QUESTION = "Who directed Lantern Street?"


def acting(shown: str) -> set[str]:
    """What of a terminal's text would act, our own colours aside."""
    left = OURS.sub("", shown)
    assert "\x1b]" not in shown
    return set(UNSAFE.findall(left)) - {"\r"}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / f"notes{EVIL[1:12]}"
    folder.mkdir()
    text = f"Lantern Street is a 1987 film {EVIL} directed by Ada {EVIL}Quill."
    record = {"id": f"1{EVIL}", "title": f"Lantern Street{EVIL}", "text": text}
    (folder / "a\x1b[31m\u202e.jsonl").write_text(json.dumps(record))
    (folder / "bad\x1b[31m\u202e.jsonl").write_text("{")
    return folder


def test_what_is_taken_away_is_all_that_acts() -> None:
    assert printable(f"\t{EVIL}\n") == f"\t{TAME}\n"
    assert one_line(" a\x1b[2J\n\n\tpyrag: all is well\u2028b ") == "a[2J pyrag: all is well b"
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert not UNSAFE.findall(printable(everything))
    assert set(everything) - set(printable(everything)) == set(UNSAFE.findall(everything))


def test_json_keeps_what_it_escapes() -> None:
    line = json_line(json.dumps({"text": EVIL}, ensure_ascii=False))
    assert not UNSAFE.findall(line)
    assert json.loads(line) == {"text": EVIL}


def test_nothing_goes_around_a_safe_stream() -> None:
    raw = io.TextIOWrapper(io.BytesIO())
    stream = SafeStream(raw)
    with pytest.raises(AttributeError):
        _ = stream.buffer
    assert raw_stream(stream) is raw
    print(EVIL, file=stream)  # type: ignore[call-overload]
    stream.writelines([EVIL])
    raw.seek(0)
    assert raw.read() == f"{TAME}\n{TAME}"


def test_a_progress_bar_returns_to_its_line_start() -> None:
    raw = io.StringIO()
    stream = SafeStream(raw, with_bars=True)
    stream.write("\r 50 %|\x1b[31m\r")
    assert raw.getvalue() == "\r 50 %|[31m"


@pytest.mark.slow
def test_documents_act_nowhere(pyrag: Run, tmp_path: Path, notes: Path) -> None:
    ask = ("ask", QUESTION, "--index", "ix")
    commands = [
        ("index", str(notes), "--out", "ix"), ("index", "info", "ix"), ("index", "info", "ix", "--json"),
        ("index", "search", "ix", "lantern"), ("index", "search", "ix", "lantern", "--json"), ("index", "verify", "ix"),
        (*ask, "--trace", f"t{EVIL[:9]}.json"), (*ask, "--json"), ("ask", f"Who is {EVIL[1:]}?", "--json"),
        ("trace", "show", f"t{EVIL[:9]}.json"), ("trace", "replay", f"t{EVIL[:9]}.json"),
        ("ask", f"Who is {EVIL[1:]}?", "--index", "ix"), ("ask", "x", "--index", f"none{EVIL[1:]}"),
        ("ask", "x", f"--no{EVIL[1:9]}"), (f"no{EVIL[1:]}",), ("trace", "show", f"none{EVIL[1:]}"),
        ("ask", "x", "--llm", f"openai:m{EVIL[1:9]}@http://127.0.0.1:9/v1"), ("ask", "x", "--method", EVIL[1:]),
        ("doctor", "--index", "ix"), ("doctor", "--index", f"no{EVIL[1:9]}", "--json"),
    ]  # fmt: skip
    for command in commands:
        done = pyrag(*command)
        assert "Traceback" not in done.stderr
        assert not UNSAFE.findall(done.stdout + done.stderr), command
    for command in (commands[0], (*ask, "--joint"), commands[9], ("ask", "x", "--method", EVIL[1:])):
        assert not acting(in_terminal(tmp_path, *command).text), command


@pytest.mark.slow
def test_a_model_server_acts_nowhere(pyrag: Run, tmp_path: Path, server: ModelServer) -> None:
    server.replies |= {
        "decompose": json.dumps([f"Who is {EVIL}?"]),
        "plan": PROGRAM.replace("final_answer", f"# {EVIL}\nfinal_answer".replace("\r", "")),
        "answer": f"<answer>an {EVIL} executive</answer> [1]",
    }
    server.models = [{"id": f"tiny{EVIL}", "object": "model"}]
    ask = ("ask", "Who is Jed Hoyer?", "--llm", f"openai:tiny@{server.url}")
    for command in (ask, (*ask, "--json"), ("models", f"openai:@{server.url}"), ("doctor", "--llm", ask[-1])):
        done = pyrag(*command)
        assert done.returncode == 0, done.stderr
        assert not UNSAFE.findall(done.stdout + done.stderr), command
    assert not acting(in_terminal(tmp_path, *ask).text)
    server.refuse = lambda body: (400, {"error": {"message": f"no {EVIL}\npyrag: all is well"}})
    done = pyrag(*ask)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert not UNSAFE.findall(done.stderr)
    assert not acting(in_terminal(tmp_path, *ask).text)


def gone(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command whose stdout nobody reads any more, from the first byte on."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            [*COMMAND, *arguments], input=stdin, stdout=write, stderr=subprocess.PIPE, text=True,
            cwd=folder, env=environment(), timeout=120,
        )  # fmt: skip
    finally:
        os.close(write)


@pytest.mark.slow
def test_a_reader_that_has_gone_ends_any_command_quietly(pyrag: Run, tmp_path: Path) -> None:
    assert pyrag("ask", "Who directed Gravity?", "--trace", "t.json").returncode == 0
    (tmp_path / "p.py").write_text("final_answer = 1")
    commands = [
        ("ask", "Who directed Gravity?"), ("ask", "Who directed Gravity?", "--json"), ("ask", "-"), ("--help",),
        ("ask", "-h"), ("--version",), ("trace", "show", "t.json"), ("trace", "replay", "t.json"), ("doctor",),
        ("doctor", "--json"), ("sandbox", "check", "p.py"), ("serve-model", "m", "--dry-run"),
    ]  # fmt: skip
    for command in commands:
        done = gone(tmp_path, *command, stdin="Who directed Gravity?\n" * 3)
        assert (done.stderr, done.returncode) == ("", 0), command


def test_a_reader_that_goes_in_the_middle_ends_it_too(tmp_path: Path) -> None:
    line = f"{shlex.join(COMMAND)} ask - --json | head -n 1"
    questions = "Who directed Gravity?\n" * 40
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], input=questions, capture_output=True, text=True,
        cwd=tmp_path, env=environment(), timeout=120,
    )  # fmt: skip
    assert (done.stderr, done.returncode, done.stdout.count("\n")) == ("", 0, 1)


@pytest.mark.parametrize("group", [(), ("ask",), ("index",), ("index", "build"), ("bench", "show"), ("trace", "show")])
def test_h_is_help(pyrag: Run, group: tuple[str, ...]) -> None:
    short, long = pyrag(*group, "-h"), pyrag(*group, "--help")
    assert short.stdout == long.stdout
    assert short.stdout.startswith("Usage: ")
