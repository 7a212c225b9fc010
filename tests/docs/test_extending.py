"""The files of the pages on extensions and retrievers, written to a folder and run there as a reader would."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import environment

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("extending.md", "extending/retriever.md"))
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
ENTRY_POINTS = re.compile(r"```toml\n\[project\.entry-points\.\"([\w.]+)\"\]\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ python (-m pyrag\.testing (?:retriever|catalogue|tool) .*)$", re.MULTILINE)
MAX_LINES = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the document, and the metadata of an installed package with its entry points."""
    made = tmp_path_factory.mktemp("extending")
    for name, source in FILE.findall(TEXT):
        assert source.count("\n") < MAX_LINES, name
        (made / name).write_text(source, encoding="utf-8")
    about = made / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "".join(f"[{group}]\n{lines}" for group, lines in ENTRY_POINTS.findall(TEXT)).replace('"', "")
    (about / "entry_points.txt").write_text(points)
    assert sorted(path.name for path in made.glob("*.py")) == [
        "catalogue.py",
        "filtering.py",
        "first_passage.py",
        "listing.py",
        "my_tools.py",
        "progress.py",
        "test_catalogue.py",
        "test_tools.py",
    ]
    return made


def run(folder: Path, *arguments: str) -> str:
    variables = environment()
    variables["PYTHONPATH"] = f"{folder}:{variables['PYTHONPATH']}"
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tool_is_called_by_programs(folder: Path) -> None:
    program = '```python\nfinal_answer = population("Alpha") - population("Gamma")\n```'
    (folder / "script.json").write_text(json.dumps({"decompose": '["How many?"]', "plan": program}))
    said = run(
        folder, "-m", "pyrag", "ask", "How many?", "--llm", "scripted:script.json", "--tools", "my_tools:population"
    )
    assert said == "400\n"


def test_retriever_answers(folder: Path) -> None:
    assert run(folder, "catalogue.py") == "Ada Berg\n"


def test_retriever_of_a_package_is_found_by_its_spec(folder: Path) -> None:
    asked = ["ask", "Who built the mill of Alpha?", "--retriever", "catalogue:any", "--json"]
    found = json.loads(run(folder, "-m", "pyrag", *asked))
    assert (found["retriever"], found["answer"]) == ("catalogue", "Ada Berg")
    checked = ["-m", "pyrag.testing", "retriever", "catalogue:any", "--query", "the mill of Alpha", "--finds", "mill"]
    assert "FAIL" not in run(folder, *checked)


def test_observer_shows_what_happens(folder: Path) -> None:
    lines = run(folder, "progress.py").splitlines()
    assert lines[0].endswith("lines of program")
    assert any("retrieve: When was Jed Hoyer born?" in line for line in lines)
    assert lines[-1].endswith("7 December 1973")


def test_retriever_with_filters_answers(folder: Path) -> None:
    assert run(folder, "filtering.py") == "Ada Berg\n"


def test_retriever_that_lists_documents_serves_programs(folder: Path) -> None:
    assert run(folder, "listing.py") == "['ops', 'hr']\n"


def test_method_is_found_by_its_name(folder: Path) -> None:
    asked = ["ask", "When was Jed Hoyer born?", "--method", "first-passage", "--json"]
    found = json.loads(run(folder, "-m", "pyrag", *asked))
    assert found["method"] == "first-passage"
    assert found["known"]


def test_checks_run_in_pytest_and_without(folder: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--rootdir", str(folder)]
    assert "3 passed" in run(folder, "-m", "pytest", *options, "test_catalogue.py", "test_tools.py")
    commands = COMMAND.findall(TEXT)
    assert len(commands) == 3
    for command in commands:
        said = run(folder, *shlex.split(command))
        assert "FAIL" not in said
        assert said.count("ok ") >= 5
