"""The distribution's name: every line that installs it uses it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrag
import pyrag_runtime
from pyrag.errors import install_extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
READ = {".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".cfg", ""}
WRONG = re.compile(
    r"""pip install(?: [-\w.=<>'"\[\],]+)*? ['"]?pyrag(?![-\w./:])|\bpyrag\\?\[[a-z{]|\bpyrag-\*\.whl|\bpyrag-\d"""
)
# Until pyrag is published, an extra is installed from a checkout only.
UNPUBLISHED = re.compile(r"pyrag-runtime\\?\[[a-z{]|pip install(?: [-\w.=<>'\"\[\],]+)* pyrag-runtime")
EXTRA = re.compile(r"pip install '\.\[([a-z,]+)\]'|install_extra\(\"([a-z,]+)\"\)|install_extra\('([a-z,]+)'\)")
CHECKOUT = " in a checkout of pyrag"  # the end of the sentence on how to install it


def texts() -> Iterator[tuple[str, str]]:
    """Every text file of the tree with its name. CHANGELOG.md tells of earlier names."""
    folders = [
        ROOT / name
        for name in ("pyrag", "sandbox", "prompts", "rl", "recipes", "docs", "benchmarks", "tests", "tools", ".ci")
    ]
    files = [*ROOT.glob("*"), *(file for folder in folders for file in folder.rglob("*"))]
    for file in files:
        if file.is_file() and file.suffix in READ and file.name != "CHANGELOG.md" and file != Path(__file__):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8", errors="replace")


def test_no_line_installs_another_projects_package() -> None:
    lines = [(name, line.replace(CHECKOUT, "")) for name, text in texts() for line in text.splitlines()]
    assert len(lines) > 50_000
    assert [(name, line) for name, line in lines if WRONG.search(line) and "uninstall" not in line] == []


@pytest.mark.parametrize(
    "line",
    ["pip install pyrag", "run pip install 'pyrag[docs]'", "(`pyrag[dense]`)", "dist/pyrag-*.whl", "pyrag-0.1.0"],
)
def test_the_search_finds_wrong_lines(line: str) -> None:
    assert WRONG.search(line)


def test_no_line_installs_pyrag_from_an_index() -> None:
    lines = [(name, line) for name, text in texts() for line in text.splitlines()]
    wrong = [(name, line) for name, line in lines if UNPUBLISHED.search(line)]
    assert [(name, line) for name, line in wrong if name != "pyproject.toml"] == []  # its extras name each other
    assert UNPUBLISHED.search("pip install 'pyrag-runtime[serve]'")
    assert UNPUBLISHED.search("pip install verifiers pyrag-runtime")


def test_one_function_says_how_an_extra_is_installed() -> None:
    assert install_extra("serve") == "run pip install '.[serve]' in a checkout of pyrag"
    lines = [
        (name, line)
        for name, text in texts()
        if name.startswith(("pyrag/", "sandbox/", "rl/")) and name != "pyrag/errors.py"
        for line in text.splitlines()
        if CHECKOUT in line
    ]
    assert lines == []


def test_every_named_extra_exists() -> None:
    found = [match for _, text in texts() for match in EXTRA.findall(text)]
    named = {extra for match in found for names in match for extra in names.split(",") if extra}
    assert named >= {"data", "dense", "docs", "rl"}
    assert named <= set(PROJECT["optional-dependencies"])


def test_command_and_import_keep_their_names() -> None:
    assert PROJECT["name"] == pyrag_runtime.DISTRIBUTION == "pyrag-runtime"
    assert PROJECT["scripts"] == {"pyrag": "pyrag.cli.main:main"}
    assert pyrag.__version__ == pyrag_runtime.version()
