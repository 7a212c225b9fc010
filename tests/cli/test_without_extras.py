"""pyrag as `pip install .` installs it, without NumPy, FAISS and onnxruntime: what works, and what names its extra."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run, environment
from tests.server.conftest import ModelServer, serving

EXTRA = "run pip install '.[embedded]' in a checkout of pyrag"
HIDING = """
import importlib.machinery

usual = importlib.machinery.PathFinder.find_spec

def find_spec(name, path=None, target=None):
    hidden = name.partition(".")[0] in ("numpy", "faiss", "onnxruntime")
    return None if hidden else usual(name, path, target)

importlib.machinery.PathFinder.find_spec = find_spec
"""


@pytest.fixture
def hidden(tmp_path: Path) -> dict[str, str]:
    """Environment variables of a process that does not see the packages of the extra `embedded`."""
    folder = tmp_path / "hiding"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDING)
    return {"PYTHONPATH": os.pathsep.join([str(folder), environment()["PYTHONPATH"]])}


@pytest.fixture
def notes(tmp_path: Path, pyrag: Run, hidden: dict[str, str]) -> str:
    rows = [
        {"title": "Lantern Street", "text": "Lantern Street is a film by Ada Quill.", "team": "ops", "year": 1987},
        {"title": "Harbour Song", "text": "Jed Hoyer, an executive, is in it.", "team": "lab", "year": 1990},
    ]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    built = pyrag("index", "notes.jsonl", "--out", "notes", **hidden)
    assert built.returncode == 0, built.stderr
    return "notes"


@pytest.mark.parametrize(
    ("where", "titles"),
    [
        ("year < 1990", ["Lantern Street"]),
        ("team != 'ops' and exists year", ["Harbour Song"]),
        ("not exists team or year in (1987, 1990)", ["Harbour Song", "Lantern Street"]),
    ],
)
def test_words_and_filters_need_no_extra(
    pyrag: Run, hidden: dict[str, str], notes: str, where: str, titles: list[str]
) -> None:
    searched = pyrag("index", "search", notes, "street executive", "--where", where, "--json", **hidden)
    assert searched.returncode == 0, searched.stderr
    assert sorted(row["title"] for row in json.loads(searched.stdout)) == titles


def test_a_model_server_needs_no_extra(pyrag: Run, hidden: dict[str, str], notes: str) -> None:
    with serving(ModelServer()) as server:
        asked = pyrag("ask", "Who is Jed Hoyer?", "--llm", f"openai:tiny@{server.url}", "--index", notes, **hidden)
    assert (asked.stdout, asked.returncode) == ("an executive\n", 0)


def test_the_embedded_engine_names_its_extra(pyrag: Run, hidden: dict[str, str]) -> None:
    asked = pyrag("ask", "When was Jed Hoyer born?", **hidden)
    assert asked.returncode == 2
    missing = f"the embedded engine needs numpy and onnxruntime: {EXTRA}, or name a model with --llm"
    assert asked.stderr.strip() == f"pyrag: {missing}"


def test_vectors_name_their_extra(pyrag: Run, hidden: dict[str, str], notes: str) -> None:
    built = pyrag("index", "notes.jsonl", "--out", "dense", "--dense", **hidden)
    assert built.returncode == 2
    assert built.stderr.strip() == f"pyrag: the embedder bundled needs numpy and onnxruntime: {EXTRA}"


def test_an_index_of_vectors_names_the_extra(pyrag: Run, hidden: dict[str, str], notes: str) -> None:
    assert pyrag("index", "notes.jsonl", "--out", "dense", "--dense").returncode == 0
    searched = pyrag("index", "search", "dense", "film", **hidden)
    assert searched.returncode == 2
    assert EXTRA in searched.stderr


def test_doctor_lists_the_extra_as_missing(pyrag: Run, hidden: dict[str, str]) -> None:
    found = pyrag("doctor", **hidden)
    assert f"FAIL settings: the embedded engine needs numpy and onnxruntime: {EXTRA}" in found.stdout
