"""`pyrag ask` and what goes with it, as a user meets them: output, files, mistakes, interruptions."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from pyrag.cli.doctor import PURPOSES
from tests.cli.conftest import COMMAND, Run, environment

QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
ANSWER = "John William Henry II"


def one_sentence(text: str) -> str:
    """What a user is told: no traceback, one line."""
    assert "Traceback" not in text
    lines = [line for line in text.strip().splitlines() if line.strip()]
    assert len(lines) == 1, text
    return lines[0]


def test_piped_prints_the_answer_only(pyrag: Run) -> None:
    done = pyrag("ask", QUESTION)
    assert (done.stdout, done.stderr, done.returncode) == (f"{ANSWER}\n", "", 0)


def test_tools_that_are_not_called_are_named(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town,inhabitants\nAlpha,1200\n")
    done = pyrag("ask", QUESTION, "--tools", "table:.")
    assert (done.stdout, done.returncode) == (f"{ANSWER}\n", 0)
    assert "calls no tools: name a language model with --llm" in one_sentence(done.stderr)


def test_json_has_what_scripts_read(pyrag: Run) -> None:
    found = json.loads(pyrag("ask", QUESTION, "--json").stdout)
    assert {
        "question", "answer", "known", "citations", "sub_queries", "program", "steps", "repairs", "usage", "error",
    } <= found.keys()  # fmt: skip
    assert (found["answer"], found["known"], found["error"], found["engine"]) == (ANSWER, True, None, "embedded")
    assert {citation["id"] for citation in found["citations"]} == {"jed-hoyer", "john-william-henry-ii"}
    assert len(found["steps"]) == 4
    assert "retrieve(" in found["program"]


def test_questions_from_stdin_are_answered_in_order(pyrag: Run) -> None:
    done = pyrag("ask", "-", "--json", "--concurrency", "3", stdin=f"{QUESTION}\n\nWho directed Gravity?\n{QUESTION}\n")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["question"] for one in found] == [QUESTION, "Who directed Gravity?", QUESTION]
    assert found[0]["answer"] == found[2]["answer"] == ANSWER


def test_a_terminal_shows_the_whole_course(tmp_path: Path) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "ask", QUESTION],
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=tmp_path,
        env=environment(TERM="xterm"),
    )
    os.close(child)
    shown = b""
    try:
        while chunk := os.read(parent, 65536):
            shown += chunk
    except OSError:
        pass  # a pseudo-terminal whose process has ended
    assert process.wait(timeout=120) == 0
    text = shown.decode()
    for part in (
        "engine: embedded",
        "no language model",
        "Sub-queries",
        "Program",
        "retrieve",
        "Answer:",
        "[1]",
        "[2]",
    ):
        assert part in text
    assert "\x1b[" in text


def test_no_colours_without_a_terminal(pyrag: Run) -> None:
    for arguments in (("ask", QUESTION), ("--help",), ("doctor",)):
        assert "\x1b" not in pyrag(*arguments).stdout


def test_a_trace_is_saved_shown_and_replayed(pyrag: Run, tmp_path: Path) -> None:
    pyrag("ask", QUESTION, "--trace", "trace.json")
    shown = pyrag("trace", "show", "trace.json").stdout
    assert "Sub-queries" in shown
    assert ANSWER in shown
    assert pyrag("trace", "show", "trace.json", "trace.json").stdout == shown + shown
    done = pyrag("trace", "replay", "trace.json")
    assert "equal in every step" in done.stdout
    assert done.returncode == 0
    file = tmp_path / "trace.json"
    changed = json.loads(file.read_text())
    changed["exchanges"][-1]["reply"]["value"]["text"] = "1 January 1999"
    file.write_text(json.dumps(changed))
    done = pyrag("trace", "replay", "trace.json")
    assert done.returncode == 1
    assert "differs" in done.stdout


def test_a_recording_replays_without_engine_and_index(pyrag: Run, tmp_path: Path) -> None:
    pyrag("ask", QUESTION, "--record", "run.jsonl")
    done = pyrag("ask", QUESTION, "--llm", "replay:run.jsonl", "--json")
    assert json.loads(done.stdout)["answer"] == ANSWER
    done = pyrag("ask", "Something else?", "--llm", "replay:run.jsonl")
    assert done.returncode == 1
    assert "the recording holds no" in one_sentence(done.stderr)


def test_own_notes_are_indexed_and_asked(pyrag: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "mill.md").write_text("# Fenwick Mill\n\nFenwick Mill is a water mill founded by Orla Venn in 1823.\n")
    (notes / "people.jsonl").write_text(
        '{"id": "1", "title": "Orla Venn", "text": "Orla Venn (born 4 May 1790 in Brackholm) was a miller."}\n'
    )
    done = pyrag("index", "notes", "--out", "my-index")
    assert "2 passages" in done.stdout
    done = pyrag("ask", "When was the founder of Fenwick Mill born?", "--index", "my-index", "--json")
    found = json.loads(done.stdout)
    assert found["answer"] == "4 May 1790"
    assert {citation["title"] for citation in found["citations"]} == {"Fenwick Mill", "Orla Venn"}


@pytest.mark.parametrize("question", ["", "   "])
def test_an_empty_question_is_refused(pyrag: Run, question: str) -> None:
    done = pyrag("ask", question)
    assert done.returncode == 2
    assert "the question is empty" in one_sentence(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("ask", "Who?", "--llm", "opnai:x"), "openai", 2),
        (("ask", "Who?", "--method", "pyrga"), "did you mean 'pyrag'", 2),
        (("ask", "Who?", "--topk", "0"), "topk must be above 0", 2),
        (("ask", "Who?", "--index", "none"), "there is no index at none", 2),
        (("ask", "Who?", "--index", "."), "not a pyrag index", 2),
        (("ask", "Who?", "--config", "none.toml"), "cannot read the config file none.toml", 2),
        (("ask", "Who?", "--trace", "no/such/folder.json"), "No such file", 1),
        (("ask", "Who?", "--llm", "replay:none"), "cannot read the recording", 2),
        (("trace", "show", "none"), "cannot read the trace none", 2),
        (("index", "none.jsonl", "--out", "x"), "none.jsonl", 2),
        (("sandbox", "check", "none.py"), "cannot read none.py", 2),
    ],
)
def test_a_mistake_gets_one_sentence(pyrag: Run, arguments: tuple[str, ...], said: str, code: int) -> None:
    done = pyrag(*arguments)
    assert said in one_sentence(done.stderr)
    assert done.returncode == code
    assert done.stdout == ""


def test_a_typo_in_a_flag_names_the_right_one(pyrag: Run) -> None:
    done = pyrag("ask", "Who?", "--tokp", "3")
    assert "--topk" in done.stderr
    assert done.returncode == 2


def test_a_typo_in_the_config_names_the_right_key(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "pyrag.toml").write_text('lllm = "embedded"\n')
    done = pyrag("ask", "Who?")
    assert "did you mean 'llm'" in one_sentence(done.stderr)


def test_debug_shows_the_traceback(pyrag: Run) -> None:
    assert "Traceback" in pyrag("ask", "", "--debug").stderr


def test_a_broken_line_is_named_and_the_rest_indexed(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"id": "1", "title": "a", "text": "b"}\n{"id": \n')
    done = pyrag("index", "notes.jsonl", "--out", "my-index")
    assert "left out 1 record:\n  notes.jsonl line 2: not JSON" in done.stderr
    assert (done.returncode, done.stdout.startswith("1 passage in my-index")) == (0, True)


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_server_that_is_down_is_named(pyrag: Run) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    done = pyrag("ask", QUESTION, "--retriever", url)
    assert url in one_sentence(done.stderr)
    assert (done.returncode, done.stdout) == (3, "")  # a failure is no answer
    done = pyrag("ask", QUESTION, "--llm", f"openai:m@{url}/v1", "--json")
    found = json.loads(done.stdout)
    assert found["error"]["kind"] == "service"
    assert url in found["error"]["message"]
    assert not found["known"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", QUESTION, "--topp", "3"), "no such option: --topp, did you mean --topk: see pyrag ask -h"),
        (("ask", QUESTION, "--indx", "a"), "no such option: --indx, did you mean --index: see pyrag ask -h"),
        (("ask", QUESTION, "--zzz"), "no such option: --zzz: see pyrag ask -h"),
        (("aks",), "no such command 'aks', did you mean 'ask': see pyrag -h"),
        (("ask",), "missing argument 'question': see pyrag ask -h"),
        (
            ("ask", "who", "wrote", "Dracula"),
            "unexpected arguments (wrote Dracula), put a text with spaces into quotes: see pyrag ask -h",
        ),
    ],
)
def test_a_mistyped_command_line_is_one_sentence(pyrag: Run, words: tuple[str, ...], said: str) -> None:
    done = pyrag(*words)
    assert (done.returncode, one_sentence(done.stderr)) == (2, f"pyrag: {said}")


def test_a_full_disk_is_one_sentence(pyrag: Run) -> None:
    for option in ("--trace", "--record"):
        done = pyrag("ask", QUESTION, option, "/dev/full")
        assert one_sentence(done.stderr) == "pyrag: cannot read or write /dev/full: No space left on device"
        assert done.stdout == f"{ANSWER}\n"
        assert done.returncode == 1


def test_a_run_that_cannot_start_leaves_the_last_trace(pyrag: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert pyrag("ask", QUESTION, "--trace", "trace.json").returncode == 0
    kept = (tmp_path / "trace.json").read_text()
    assert kept.count("\n") == 1
    assert pyrag("ask", QUESTION, "--trace", "trace.json", "--llm", "bogus").returncode == 2
    assert (tmp_path / "trace.json").read_text() == kept


def test_doctor_says_what_would_be_used(pyrag: Run, tmp_path: Path) -> None:
    done = pyrag("doctor", "--json")
    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0
    assert {"python", "packages", "sandbox", "engine", "retriever"} <= findings.keys()
    assert "embedded" in findings["engine"]["detail"]
    (tmp_path / "own.py").write_text(
        'def length(text: str) -> int:\n    """Characters of a text."""\n    return len(text)\n'
    )
    findings = {one["what"]: one for one in json.loads(pyrag("doctor", "--json", "--tools", "own:length").stdout)}
    assert findings["tools"]["detail"] == "length"
    assert "FAIL settings: " in pyrag("doctor", "--tools", "own:nothing").stdout
    done = pyrag("doctor", "--retriever", f"http://127.0.0.1:{unused_port()}")
    assert "FAIL retriever" in done.stdout
    assert done.returncode == 1


def test_doctor_tells_of_this_platform_and_a_healthy_index(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "zebra.txt").write_text("Zebras graze.\n")
    assert pyrag("index", "zebra.txt", "-o", "ix").returncode == 0
    done = pyrag("doctor", "--index", "ix")
    assert (done.returncode, "FAIL" in done.stdout) == (0, False)
    assert "ok   retriever: bm25:ix answers; it holds 1 passage\n" in done.stdout
    foreign = "seatbelt" if sys.platform == "linux" else "seccomp"
    assert (foreign in done.stdout, "OFF" in done.stdout) == (False, False)
    assert re.fullmatch(r"pyrag is ready: \d+ checks passed", done.stdout.splitlines()[-1])
    failed = pyrag("doctor", "--retriever", f"http://127.0.0.1:{unused_port()}", "--tools", "os:getcwd").stdout
    assert re.search(r"^\d of \d+ checks failed: \w+", failed, re.MULTILINE)


def test_doctor_says_how_to_get_what_is_missing(pyrag: Run) -> None:
    """The extras are those of pyproject.toml; their packages are looked for, not imported."""
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert extras.pop("all")
    assert PURPOSES.keys() == extras.keys()
    line = next(line for line in pyrag("doctor").stdout.splitlines() if line.startswith("ok   extras: "))
    present, _, missing = line.removeprefix("ok   extras: ").partition("missing: ")
    named = {*re.findall(r"\w+", present), *re.findall(r"(\w+) \(", missing)}
    assert named >= extras.keys() - (set() if sys.platform == "linux" else {"rl", "vllm"})
    assert not missing or "pip install '.[NAME]'" in line


def test_ctrl_c_says_so_and_leaves_no_process(tmp_path: Path) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    process = subprocess.Popen(
        [*COMMAND, "ask", QUESTION, "--retriever", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    connection, _ = listener.accept()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    connection.close()
    listener.close()
    assert "interrupted" in one_sentence(said)
    assert process.returncode == 130
    assert children
    for _ in range(100):
        if not any(Path(f"/proc/{child}").exists() for child in children):
            break
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.slow
def test_traces_and_recordings_are_private(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("")
    (tmp_path / "old.json").chmod(0o644)
    pyrag("ask", "Who directed Gravity?", "--trace", "t.json", "--record", "r.jsonl")
    pyrag("ask", "Who directed Gravity?", "--trace", "old.json", "--record", "r.jsonl")
    pyrag("chat", "--trace", "chat.jsonl", stdin="Who directed Gravity?\n")
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("t.json", "r.jsonl", "old.json", "chat.jsonl")}
    assert modes == dict.fromkeys(modes, 0o600)
    assert pyrag("ask", "Who directed Gravity?", "--trace", "/dev/null").returncode == 0
