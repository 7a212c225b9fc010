"""The declared surface: what the public packages export, its docstrings, and that documents use nothing else."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyrag.errors
import pyrag_sandbox
from pyrag._io import plugins
from tests.test_house import entries, is_nominal, opens_with_verb

ROOT = Path(__file__).parent.parent
PUBLIC = ("pyrag", "pyrag.extend", "pyrag.trace", "pyrag.testing", "pyrag_sandbox")
NAMES = Path(__file__).with_name("surface.txt")  # one exported name per line: a change of it is a change of the surface
IMPORT = re.compile(r"^\s*(?:from|import) (pyrag[\w.]*)", re.MULTILINE)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
DOCUMENTS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "sandbox/README.md"]
ADAPTERS = "pyrag.integrations."  # one module per framework, named by docs/stability.md
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\**\w+)(?:, \**\w+)*: \S", re.MULTILINE)
LISTED = re.compile(r"^    (\**\w+(?:, \**\w+)*): \S", re.MULTILINE)


def exported() -> Iterator[tuple[str, str, Any]]:
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            yield package, name, getattr(module, name)


def test_exported_names_are_those_of_the_list() -> None:
    lines = [line for line in NAMES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [f"{package} {name}" for package, name, _ in exported()] == lines


@pytest.mark.parametrize("package", PUBLIC)
def test_names_are_listed_once_and_shown(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def test_star_import_brings_the_exported_names() -> None:
    for package in PUBLIC:
        namespace: dict[str, Any] = {}
        exec(f"from {package} import *", namespace)
        assert set(importlib.import_module(package).__all__) <= namespace.keys()


def test_all_exceptions_are_exported() -> None:
    defined = [
        name
        for name, value in vars(pyrag.errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "pyrag.errors"
    ]
    assert len(defined) > 10
    assert set(defined) <= set(pyrag.__all__)
    assert {"SandboxError", "PrimitiveError", "WorkerLostError"} <= set(pyrag_sandbox.__all__)


@pytest.mark.parametrize("package", PUBLIC[:-1])
def test_importing_a_public_package_is_cheap(package: str) -> None:
    heavy = {"aiohttp", "msgspec", "numpy", "onnxruntime", "RestrictedPython", "rich", "typer", "pyrag.api"}
    code = f"import sys, {package}; print(*[name for name in {sorted(heavy)} if name in sys.modules])"
    limit = heavy if package != "pyrag.testing" else heavy - {"msgspec"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not set(done.stdout.split()) & limit


def in_house(value: object) -> bool:
    return (getattr(value, "__module__", None) or "").split(".")[0] in ("pyrag", "pyrag_sandbox")


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class: own ones, and those of its bases in pyrag.

    A method without a docstring has the one of the base that it overrides, as `help` shows it.
    """
    shown: dict[str, Any] = {}
    for base in filter(in_house, owner.__mro__):
        for name, value in vars(base).items():
            is_member = inspect.isfunction(function_of(value)) or isinstance(value, property)
            if is_member and not name.startswith("_") and not (name in shown and function_of(shown[name]).__doc__):
                shown[name] = value
    yield from shown.items()


def function_of(value: Any) -> Any:
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def documented() -> Iterator[tuple[str, Any]]:
    """Yield every exported class and function, and every public member of exported classes, with its place."""
    for package, name, value in exported():
        if inspect.isclass(value) and in_house(value):
            yield f"{package}.{name}", value
            yield from ((f"{package}.{name}.{member}", inner) for member, inner in members(value))
        elif inspect.isfunction(value):
            yield f"{package}.{name}", value


DOCUMENTED = dict(documented())


def parts(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the summary of a docstring and the text of each of its sections."""
    pieces = SECTION.split(docstring)
    return pieces[0].partition("\n")[0], dict(zip(pieces[1::2], pieces[2::2], strict=True))


def parameters(value: Any) -> list[str]:
    names = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    return [name for name in names if not name.startswith("_")]


def faults(value: Any) -> Iterator[str]:
    """Yield what a docstring lacks: a summary in its form, an entry per parameter, sections that are sentences."""
    docstring = inspect.cleandoc(function_of(value).__doc__ or "")
    if not docstring or (inspect.isclass(value) and docstring.startswith(f"{value.__name__}(")):
        yield "no docstring"
        return
    summary, sections = parts(docstring)
    if not re.search(r"[.:]$", summary):
        yield f"the summary is not one sentence on one line: {summary!r}"
    yield from faults_of_form(value, docstring)
    yield from faults_of_names(value, sections)
    for text in entries(docstring.replace("Attributes:\n", "Args:\n")):
        if not re.match(r"[A-Z`\"0-9]", text) or not text.endswith("."):
            yield f"the entry is not a sentence: {text!r}"
    for section in ("Returns", "Yields", "Raises"):
        if section in sections and not sections[section].strip().endswith("."):
            yield f"the section {section} does not end with a full stop"


def faults_of_form(value: Any, docstring: str) -> Iterator[str]:
    summary = docstring.partition("\n")[0]
    if inspect.isclass(value):
        if not is_nominal(docstring):
            yield f"the summary is not nominal: {summary!r}"
    elif not isinstance(value, property) and not opens_with_verb(docstring):
        yield f"the summary is not imperative: {summary!r}"


def faults_of_names(value: Any, sections: dict[str, str]) -> Iterator[str]:
    if inspect.isclass(value):
        fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
        known = {*fields, *dir(value), *getattr(value, "__annotations__", {})}
        if unknown := [name for name in ENTRY.findall(sections.get("Attributes", "")) if name not in known]:
            yield f"entries under Attributes for unknown names {unknown}"
    elif not isinstance(value, property) and len(wanted := parameters(function_of(value))) > 1:
        named = {name.strip("*") for line in LISTED.findall(sections.get("Args", "")) for name in line.split(", ")}
        if missing := [name for name in wanted if name not in named]:
            yield f"no entry under Args for {missing}"


@pytest.mark.parametrize("place", DOCUMENTED)
def test_exported_members_have_complete_docstrings(place: str) -> None:
    assert list(faults(DOCUMENTED[place])) == []


def test_the_check_of_docstrings_finds_faults() -> None:
    def lacking(first: int, second: int) -> None:
        """Returns it.

        Args:
            first: number
        """

    assert list(faults(lacking)) == [
        "the summary is not imperative: 'Returns it.'",
        "no entry under Args for ['second']",
        "the entry is not a sentence: 'number'",
    ]
    assert list(faults(type("Bare", (), {}))) == ["no docstring"]
    assert len(DOCUMENTED) > 150


def imported(path: Path) -> set[str]:
    """Return the modules of pyrag that a file imports; of a document, that its blocks of Python import."""
    text = path.read_text(encoding="utf-8")
    sources = BLOCK.findall(text) if path.suffix == ".md" else [text]
    return {name for source in sources for name in IMPORT.findall(source)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_import_public_packages_only(document: Path) -> None:
    assert [name for name in imported(document) if name not in PUBLIC and not name.startswith(ADAPTERS)] == []


def test_examples_import_public_packages_only() -> None:
    files = sorted((ROOT / "examples").rglob("*.py"))
    assert len(files) > 5
    used = {name for path in files for name in imported(path)}
    assert {"pyrag", "pyrag.extend"} <= used <= set(PUBLIC)


def test_what_is_imported_is_exported() -> None:
    """Documents and examples import names of `__all__`, not submodules of public packages."""
    files = [*DOCUMENTS, *(ROOT / "examples").rglob("*.py")]
    sources = [source for path in files for source in sources_of(path)]
    used = {(node.module, alias.name) for source in sources for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and node.module in PUBLIC for alias in node.names}  # fmt: skip
    assert len(used) > 15
    assert [pair for pair in sorted(used) if pair[1] not in importlib.import_module(pair[0]).__all__] == []


def sources_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return BLOCK.findall(text) if path.suffix == ".md" else [text]


def test_stability_page_names_the_public_packages() -> None:
    page = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert tuple(table) == PUBLIC
    listed = page.partition("**Entry points**")[2].partition("\n* ")[0]
    assert set(re.findall(r"`(pyrag\.\w+)`", listed)) == {f"pyrag.{kind}" for kind in plugins.OWN}
