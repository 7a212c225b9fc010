"""The documents name what exists: files, folders, modules, options of commands, make targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pyrag._io import plugins
from pyrag.settings import declarations

ROOT = Path(__file__).parents[2]
WRITTEN = {"commands.md"}  # from the code, see `tests/repository/test_reference.py`
DOCUMENTS = [
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in WRITTEN),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
PACKAGES = {
    "pyrag": ROOT / "pyrag",
    "pyrag_helpers": ROOT / "pyrag_helpers",
    "pyrag_sandbox": ROOT / "sandbox/pyrag_sandbox",
    "pyrag_rl": ROOT / "rl/pyrag_rl",
    "pyrag_prompts": ROOT / "prompts/pyrag_prompts",
    "benchmarks": ROOT / "benchmarks",
    "recipes": ROOT / "recipes",
}
TOP = "pyrag|sandbox|rl|recipes|prompts|tests|docs|benchmarks|tools"
FILE = re.compile(rf"`((?:{TOP})(?:/[\w.-]+)+/?)`")
PART = re.compile(r"`([\w/]+\.py)`")  # the end of a module's path, as in `opera/goals.py`
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
MODULE = re.compile(rf"(?<![\w./-])((?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+)(?![\w/]|\.\w)")
NO_MODULES = {"pyrag.toml", *(f"pyrag.{kind}" for kind in plugins.OWN)}  # a file of a user; groups of entry points
COMMANDS = (ROOT / "pyrag/cli", ROOT / "rl/pyrag_rl/cli")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]+)")
MAKE = re.compile(r"`make ([a-z][a-z0-9-]+)|^\$ make ([a-z][a-z0-9-]+)", re.MULTILINE)
# Options of mypy, pip, gunicorn, tensorboard, typer, docker and vf-eval.
FOREIGN = (
    {"--strict", "--no-build-isolation", "--preload", "--logdir", "--install-completion", "--show-completion"}
    | {
        f"--{name}"
        for name in ("cap-drop", "memory", "network", "no-deps", "pids-limit", "privileged", "read-only", "rm")
    }
    | {"--security-opt", "--tmpfs", "--client", "--env", "--no-push"}
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = {ROOT / name for name in FILE.findall(text)} | {document.parent / name for name in LINK.findall(text)}
    assert [str(path) for path in sorted(named) if not path.exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_ends_of_paths_exist(document: Path) -> None:
    named = set(PART.findall(document.read_text(encoding="utf-8")))
    assert [part for part in sorted(named) if not any(path.endswith(f"/{part}") for path in all_modules())] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_modules_exist(document: Path) -> None:
    named = set(MODULE.findall(document.read_text(encoding="utf-8"))) - NO_MODULES
    assert [name for name in sorted(named) if not exists(name)] == []


def test_modules_named_in_code_exist() -> None:
    """In docstrings, comments and texts, such as the paths of functions that are imported by name."""
    wrong = [
        (str(path.relative_to(ROOT)), name)
        for folder in PACKAGES.values()
        for path in sorted(folder.rglob("*.py"))
        for name in sorted(set(MODULE.findall(path.read_text(encoding="utf-8"))))
        if name.count(".") > 1 and not exists(name)
    ]
    assert wrong == []


def test_named_options_exist() -> None:
    folders = (
        ROOT / "pyrag/cli",
        ROOT / "pyrag/testing",
        ROOT / "pyrag/retrieval/embedders",
        ROOT / "rl",
        ROOT / "recipes",
        ROOT / "benchmarks",
    )
    declared = {option for folder in folders for path in folder.rglob("*.py") for option in options(path)}
    declared |= {option for setting in declarations().values() for option in setting.flag.split("/")}
    assert len(declared) > 50
    for document in DOCUMENTS:
        named = set(OPTION.findall(document.read_text(encoding="utf-8"))) - FOREIGN
        assert sorted(named - declared) == [], document.name


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        named = {name for pair in MAKE.findall(document.read_text(encoding="utf-8")) for name in pair if name}
        assert named <= targets, document.name


def test_the_search_finds_names() -> None:
    assert MODULE.findall("see `pyrag.methods.registry`, pyrag.errors.") == ["pyrag.methods.registry", "pyrag.errors"]
    assert not exists("pyrag.methods.nowhere")
    assert exists("pyrag.errors.PyRAGError")
    assert not exists("pyrag.errors.NoSuchError")
    assert FILE.findall("`pyrag/llm/spec.py` and `runs/x`") == ["pyrag/llm/spec.py"]


@cache
def all_modules() -> list[str]:
    folders = (*PACKAGES.values(), ROOT / "tests", ROOT / "tools")
    return ["/pyrag_runtime.py", *(f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.py"))]


@cache
def exists(name: str) -> bool:
    """True for a dotted name of a package, a module, or something that a module defines or imports."""
    root, *parts = name.split(".")
    place = PACKAGES[root]
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        place /= f"{parts.pop(0)}.py"
    elif parts:
        place /= "__init__.py"
    return not parts or bool(re.search(rf"\b{parts[0]}\b", place.read_text(encoding="utf-8")))


def options(path: Path) -> Iterator[str]:
    """Options that a module declares: texts that are one, and parameters of commands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from OPTION.findall(node.value) if node.value.startswith("-") else ()
        elif isinstance(node, ast.arg) and any(map(path.is_relative_to, COMMANDS)):
            yield f"--{node.arg.replace('_', '-')}"
