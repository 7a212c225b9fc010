"""`pyrag experience` in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

LINES = [
    {"type": "bridge", "insight": "Find the person first.", "utility": 3, "uses": 4},
    {"type": "comparison", "difficulty": "easy", "asks": "yes/no", "insight": "Retrieve side by side \x1b[31m."},
]
FILE = "\n".join(map(json.dumps, LINES))


@pytest.fixture
def library(pyrag: Run) -> str:
    done = pyrag("experience", "import", "experience.db", "-", stdin=FILE)
    assert done.stdout == "2 added, 2 entries: experience.db\n", done.stderr
    return "experience.db"


def test_what_is_exported_can_be_imported(pyrag: Run, library: str, tmp_path: Path) -> None:
    exported = pyrag("experience", "export", library).stdout
    pyrag("experience", "export", library, "--out", "entries.jsonl")
    assert (tmp_path / "entries.jsonl").read_text() == exported
    assert json.loads(pyrag("experience", "import", "copy.db", "entries.jsonl", "--json").stdout)["added"] == 2
    assert pyrag("experience", "export", "copy.db").stdout == exported
    again = json.loads(pyrag("experience", "import", "copy.db", "entries.jsonl", "--json").stdout)
    assert again == {"added": 0, "entries": 2}
    assert json.loads(pyrag("experience", "import", "copy.db", "-", "--json", stdin=FILE).stdout)["added"] == 0


def test_entries_are_listed_by_utility_and_shown_without_control_characters(pyrag: Run, library: str) -> None:
    lines = pyrag("experience", "list", library).stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [["1", "3/4", "bridge"], ["2", "0/0", "comparison"]]
    assert "\x1b" not in lines[1]
    one = json.loads(pyrag("experience", "list", library, "--type", "bridge", "--json").stdout)
    assert (one["utility"], one["uses"], one["difficulty"]) == (3, 4, "medium")
    shown = pyrag("experience", "show", library, "1").stdout
    assert "Find the person first." in shown
    assert "3 of the 4 trajectories" in shown
    assert json.loads(pyrag("experience", "show", library, "2", "--json").stdout)["asks"] == "yes/no"


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("list", "missing.db"), "", "there is no such file"),
        (("list", "."), "", "it is a folder"),
        (("list", "text.db"), "", "not a database"),
        (("show", "experience.db", "9"), "", "has no entry 9"),
        (("show", "experience.db", "99999999999999999999"), "", "has no entry 9"),
        (("import", "nowhere/experience.db", "-"), FILE, "check that its folder is there"),
        (
            ("import", "experience.db", "-"),
            FILE + '\n{"type": "bridge", "insight": " "}',
            "- line 3: an insight must have",
        ),
        (("list", "experience.db", "--type", "brigde"), "", "did you mean 'bridge'?"),
        (("import", "experience.db", "missing.jsonl"), "", "cannot read missing.jsonl: No such file"),
        (("import", "experience.db", "-"), FILE + '\n{"type": "odd", "insight": "x"}', "- line 3 is not an experience"),
        (("import", "experience.db", "-"), "nonsense", "- line 1 is not an experience"),
        (("import", "experience.db", "-"), '{"type": "bridge", "insight": "x", "utility": 2}', "line 1 has a utility"),
    ],
)
def test_errors_are_one_sentence_and_change_nothing(
    pyrag: Run, library: str, tmp_path: Path, arguments: tuple[str, ...], stdin: str, said: str
) -> None:
    (tmp_path / "text.db").write_text("no database " * 100)
    before = pyrag("experience", "export", library).stdout
    done = pyrag("experience", *arguments, stdin=stdin)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert pyrag("experience", "export", library).stdout == before
