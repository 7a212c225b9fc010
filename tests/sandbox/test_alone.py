"""The sandbox by itself: its README, its public names, and its tests with nothing of pyrag to import."""

from __future__ import annotations

import ast
import inspect
import io
import os
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import pyrag_sandbox
from pyrag_sandbox import Sandbox
from pyrag_sandbox.helpers import load_helpers

HERE = Path(__file__).parent
ROOT = HERE.parents[1] / "sandbox"
README = (ROOT / "README.md").read_text(encoding="utf-8")
OURS = ("pyrag", "pyrag_helpers", "pyrag_prompts", "pyrag_rl", "pyrag_runtime", "benchmarks", "tools")
WORD = re.compile(
    r"retriev\w*|answer\w*|passages?|documents?|questions?|\brag\b|is_unknown|unknown_words", re.IGNORECASE
)
NAMES = {"final_answer"}  # the default name of a program's result
# What hides the rest of the tree from the tests: a plug-in of pytest, found before them.
BLOCKER = f"""
import sys
import pyrag_sandbox

assert pyrag_sandbox.__file__.startswith(FOLDER), pyrag_sandbox.__file__

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OURS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}: it is hidden", name=name)

sys.meta_path.insert(0, Blocker())

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `pip install ./sandbox` has filled, and nothing else."""
    if not (find_spec("pip") and find_spec("hatchling")):
        pytest.skip("pip or hatchling is not installed here: make test installs them")
    folder = tmp_path_factory.mktemp("alone")
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(ROOT)], check=True)
    (folder / "blocker.py").write_text(BLOCKER.replace("FOLDER", repr(str(folder))))
    return folder


@pytest.mark.slow
def test_an_installed_sandbox_passes_its_tests_without_pyrag(installed: Path) -> None:
    assert sorted(one.name for one in installed.glob("pyrag*")) == ["pyrag_sandbox", "pyrag_sandbox-0.1.0.dist-info"]
    names = ("check", "dataflow", "scheduler", "wire", "absent", "advisories")
    files = [str(HERE / f"test_{name}.py") for name in names]
    options = ["-p", "blocker", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(HERE.parents[1])]
    settings = ["--confcutdir", str(HERE), "--import-mode=importlib", "-o", "asyncio_mode=auto"]
    done = run(installed, "-m", "pytest", "-q", *options, *settings, *files)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) > 200


def test_the_example_of_the_readme_prints_what_it_shows(installed: Path) -> None:
    code, shown = re.findall(r"```(?:python)?\n(.*?)```", README, re.DOTALL)
    (installed / "example.py").write_text(code)
    done = run(installed, "example.py")
    assert done.stdout == shown, done.stderr


def test_the_readmes_calls_overlap() -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    module: dict[str, Any] = {"__name__": "example"}
    together = "    async with asyncio.timeout(60):\n        await barrier.wait()"  # passed by three at once
    code = code.replace("    await asyncio.sleep(0.1)", together).replace(
        "PROGRAM =", "barrier = asyncio.Barrier(3)\nPROGRAM ="
    )
    shown = io.StringIO()
    with redirect_stdout(shown):
        exec(code, module)
    assert shown.getvalue().startswith("ok Porto: 12 mm\n")


def test_tests_of_the_sandbox_import_nothing_of_pyrag() -> None:
    for file in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module else []
            assert [name for name in names if name.split(".")[0] in (*OURS, "tests")] == [], file


def test_the_sandbox_has_no_words_of_its_callers() -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in ROOT.rglob("*") if file.suffix in (".py", ".toml")}
    assert len(texts) > 30
    for file, text in {**texts, ROOT / "README.md": README}.items():
        for name in NAMES:
            text = text.replace(name, "")
        assert WORD.findall(text) == [], file


def test_its_version_has_a_place_in_its_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == "0.1.0"
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    own = {re.split(r"[<>=]", one)[0] for one in project["dependencies"]}
    whole = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert own <= {re.split(r"[<>=]", one)[0] for one in whole}
    assert {one for one in whole if re.split(r"[<>=]", one)[0] in own} == set(project["dependencies"])


@pytest.mark.parametrize("name", pyrag_sandbox.__all__)
def test_public_names_are_documented(name: str) -> None:
    public = getattr(pyrag_sandbox, name)
    if name == "Primitive":  # a type without a docstring of its own
        assert "`Call`" in README
        return
    assert public.__module__.startswith("pyrag_sandbox")
    text = inspect.getdoc(public)
    assert text
    assert not text.startswith(f"{name}(")  # which a dataclass writes itself
    members = vars(public).items() if isinstance(public, type) else ()
    for member, value in members:
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_all_names_what_the_package_offers() -> None:
    assert sorted(pyrag_sandbox.__all__) == pyrag_sandbox.__all__
    assert set(pyrag_sandbox.__all__) == {
        *("Absent", "Call", "Limits", "Outcome", "Primitive", "PrimitiveError", "ProgramError", "Record", "Sandbox"),
        *("SandboxError", "Text", "Usage", "WorkerLostError", "bind", "capabilities"),
    }


# Helpers


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "define HELPERS"),
        ("HELPERS = [len]", "define HELPERS"),
        ("HELPERS = {'no name': len}", "'no name'"),
        ("HELPERS = {'_hidden': len}", "'_hidden'"),
        ("HELPERS = {'seven': 7}", "'seven'"),
        ("HELPERS = {}\nERRORS = {'Odd': len}", "not a subclass of Exception"),
    ],
)
def test_wrong_modules_of_helpers_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, problem: str
) -> None:
    (tmp_path / "odd_helpers.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_helpers", raising=False)
    with pytest.raises(ValueError, match=re.escape(problem)):
        load_helpers("odd_helpers")


async def test_helpers_that_cannot_be_used_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_helpers.py").write_text("HELPERS = {'seven': 7}")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with Sandbox(prefork=1) as sandbox:
        with pytest.raises(pyrag_sandbox.SandboxError, match="'no_such_helpers' is not installed"):
            await sandbox.run("x = 1", {}, helpers="no_such_helpers")
        with pytest.raises(pyrag_sandbox.SandboxError, match="'seven' of 'broken_helpers'"):
            await sandbox.run("x = 1", {}, helpers="broken_helpers")
        assert (await sandbox.run("final_answer = 1", {})).value == 1


async def test_programs_have_the_helpers_of_their_run_only() -> None:
    async with Sandbox(prefork=1) as sandbox:
        source = "final_answer = shouted('a')"
        with_helpers = [await sandbox.run(source, {}, helpers="sample_helpers") for _ in range(2)]
        without = await sandbox.run(source, {})
        assert [one.value for one in with_helpers] == ["A", "A"]
        assert without.error is not None
        assert without.error.type == "NameError"
        assert len(sandbox.zygotes) == 2
