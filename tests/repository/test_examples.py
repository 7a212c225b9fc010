"""Each example does what its README says, in a copy of its folder."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT, blocks_of
from tests.docs.test_blocks import Reader

EXAMPLES = ROOT / "examples"
FOLDERS = ("contracts", "database", "evaluation", "grpo", "method", "notes", "retriever", "service")
ELSEWHERE = {"assistants", "pyrag-plugin"}  # with tests of their own
MAX_LINES = 80
SLOW = {"evaluation", "grpo", "method"}
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def user(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Somebody who copied an example."""
    reader = Reader(tmp_path, NOWHERE)
    shutil.rmtree(reader.folder)
    shutil.copytree(EXAMPLES / request.param, reader.folder)
    yield reader
    reader.stop()


def _marked(name: str) -> Any:
    return pytest.param(name, name, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize(("name", "user"), [_marked(name) for name in FOLDERS], indirect=["user"])
def test_readme_of_an_example_holds(name: str, user: Reader) -> None:
    blocks = [block for block in blocks_of(EXAMPLES / name / "README.md") if not block.reason]
    assert blocks
    for block in blocks:
        user.run(block)


def test_examples_are_listed_and_short() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == {*FOLDERS, *ELSEWHERE}
    assert set(re.findall(r"\]\(([\w-]+)/README\.md\)", (EXAMPLES / "README.md").read_text())) == folders
    sources = [path for name in FOLDERS for path in (EXAMPLES / name).glob("*.py")]
    assert len(sources) >= 5
    assert [path.name for path in sources if len(path.read_text(encoding="utf-8").splitlines()) >= MAX_LINES] == []


@pytest.mark.parametrize("user", ["service"], indirect=True)
def test_a_key_of_the_service_sees_its_team_only(user: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    client = pytest.importorskip("fastapi.testclient")
    user.run(blocks_of(EXAMPLES / "service/README.md")[0])
    monkeypatch.chdir(user.folder)
    spec = spec_from_file_location("example_service", user.folder / "app.py")
    assert spec
    assert spec.loader
    module = sys.modules["example_service"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    question = {"question": "Who founded the mill of Alpha?"}
    with client.TestClient(module.app) as service:
        replies = {
            key: service.post("/ask", json=question, headers={"X-API-Key": key})
            for key in ("a-key-of-operations", "a-key-of-the-office", "a-guess")
        }
    assert replies["a-key-of-operations"].json() == {"answer": "Ada Berg", "known": True, "citations": ["The mill"]}
    assert "The mill" not in replies["a-key-of-the-office"].text
    assert replies["a-guess"].status_code == 401
