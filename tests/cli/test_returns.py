"""`--returns` of `pyrag ask` and `pyrag run`: types by name, schemas in files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

BORN = "In what year was Ingmar Bergman born?"


def test_values_are_printed_as_json(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "schema").write_text(json.dumps({"type": "object", "properties": {"year": {"type": "integer"}}}))
    (tmp_path / "p.py").write_text("final_answer = ['3 apples', 4]")
    for arguments, wanted in (
        (("ask", BORN, "--returns", "number"), "1918"),
        (("ask", BORN, "--returns", "schema"), '{"year": 1918}'),
        (("ask", "Who directed The Seventh Seal?", "--returns", "str"), "Ingmar Bergman"),
        (("ask", "Who directed The Seventh Seal?", "--returns", "list[str]"), '["Ingmar Bergman"]'),
    ):
        done = pyrag(*arguments)
        assert (done.stdout, done.stderr, done.returncode) == (f"{wanted}\n", "", 0)
    shown = json.loads(pyrag("ask", BORN, "--returns", "int", "--json", "--trace", "t.jsonl").stdout)
    assert (shown["value"], json.loads((tmp_path / "t.jsonl").read_text())["value"]) == (1918, 1918)
    assert pyrag("trace", "replay", "t.jsonl").returncode == 0


def test_run_checks_the_value(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("final_answer = ['3 apples', 4]")
    schema = '{"type": "array", "items": {"type": "integer"}}'
    (tmp_path / "list.json").write_text(schema, encoding="utf-8-sig")  # as some editors of Windows save it
    assert json.loads(pyrag("run", "p.py", "--returns", "list.json").stdout) == [3, 4]
    done = pyrag("run", "p.py", "--returns", "bool")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "final_answer does not fit: it is not true or false" in done.stderr


@pytest.mark.parametrize(
    ("returns", "code", "words"),
    [
        ("decimal", 2, '"number", "int", "date"'),
        ("none.json", 2, "cannot read the schema none.json"),
        ("list.txt", 2, "must be a JSON object"),
        ("date", 1, "no number|does not have|date"),
    ],
)
def test_what_cannot_be_had_ends_with_a_code(pyrag: Run, tmp_path: Path, returns: str, code: int, words: str) -> None:
    (tmp_path / "list.txt").write_text("[1]")
    done = pyrag("ask", "Who directed The Seventh Seal?", "--returns", returns)
    assert (done.returncode, done.stdout) == (code, "")
    assert any(word in done.stderr for word in words.split("|"))
    assert "Traceback" not in done.stderr


def test_lines_of_stdin_share_a_type(pyrag: Run) -> None:
    done = pyrag("ask", "-", "--returns", "int", stdin=f"{BORN}\nWho directed The Seventh Seal?\n")
    assert (done.stdout, done.returncode) == ("1918\n\n", 1)
