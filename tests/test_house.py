"""The rules of the house, counted: how code is worded and cut. `tests/test_imports.py` has the rules on imports.

Each ceiling is what is left to mend. It may only be lowered; a rule whose ceiling is 0 is kept.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = ("pyrag", "pyrag_helpers", "sandbox/pyrag_sandbox", "rl/pyrag_rl")
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
MAX_WORDS = 10  # of a test's name
MAX_LINES = 400  # of a module
MAX_MODULES = 15  # of a folder
RELATIVE = re.compile(r"(What|Which|Whether|How|Where|Who|Whose|Whom|When|Why|That|Whatever|Whoever)\b")
BOUND = re.compile(
    r"^ *(_?(?:MOST|LEAST|LONGEST|SHORTEST|FEWEST|FEW|MANY|ENOUGH)(?:_[A-Z0-9_]+)?)(?:: .*)? = ", re.MULTILINE
)
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)

RELATIVE_DOCSTRINGS = 0
WITHOUT_ARGS = 2  # commands that are registered without a decorator: their options carry their help
BOUNDS = 0
LONG_MODULES = 0
TWICE = 3
LONG_NAMES = 0
LARGE_FOLDERS: dict[str, int] = {}


class Definition(NamedTuple):
    """A module, class or function; `name` is empty for a module."""

    path: str
    name: str
    docstring: str
    arguments: int = 0
    public: bool = False


@cache
def texts(*folders: str) -> dict[str, str]:
    """Modules below these folders, by path."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


@cache
def definitions() -> tuple[Definition, ...]:
    hidden = re.compile(r"/_(?!_init__|_main__|io/)")
    found: list[Definition] = []
    for path, text in texts(*PACKAGES, "prompts").items():
        tree = ast.parse(text)
        found.append(Definition(path, "", ast.get_docstring(tree) or ""))
        found += below(path, tree, public=not hidden.search(path))
    return tuple(found)


def below(path: str, node: ast.AST, *, public: bool, depth: int = 0) -> Iterator[Definition]:
    """Classes and functions among the statements of a node; functions inside of functions count as private."""
    for child in statements(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            given = child.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = sum(name not in ("self", "cls") for name in names) + bool(given.vararg) + bool(given.kwarg)
            overloaded = any(isinstance(one, ast.Name) and one.id == "overload" for one in child.decorator_list)
            shown = public and depth < 2 and not child.name.startswith("_") and not overloaded and not is_command(child)
            yield Definition(path, child.name, ast.get_docstring(child) or "", count, shown)
            yield from below(path, child, public=False, depth=2)
        elif isinstance(child, ast.ClassDef):
            yield Definition(path, child.name, ast.get_docstring(child) or "")
            yield from below(path, child, public=public and not child.name.startswith("_"), depth=depth + 1)
        else:
            yield from below(path, child, public=public, depth=depth)


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for commands of the command line: their options carry their help."""
    calls = (one.func for one in function.decorator_list if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in ("callback", "command") for one in calls)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "handlers", "finalbody"):
        if isinstance(inner := getattr(node, name, None), list):
            yield from inner


def listed(found: list[str]) -> str:
    return f"{len(found)}: " + "; ".join(found[:20])


def test_docstrings_open_with_a_verb_or_noun() -> None:
    found = [f"{one.path}: {one.docstring.splitlines()[0]}" for one in definitions() if RELATIVE.match(one.docstring)]
    assert len(found) <= RELATIVE_DOCSTRINGS, listed(found)


def test_public_functions_document_their_arguments() -> None:
    found = [
        f"{one.path}: {one.name}"
        for one in definitions()
        if one.public and one.arguments > 1 and "Args:" not in one.docstring
    ]
    assert len(found) <= WITHOUT_ARGS, listed(found)


def test_bounds_are_called_max_and_min() -> None:
    found = [f"{path}: {one}" for path, text in texts(*PACKAGES, "benchmarks").items() for one in BOUND.findall(text)]
    assert len(found) <= BOUNDS, listed(found)


def test_modules_stay_below_400_lines() -> None:
    found = [path for path, text in texts(*PACKAGES).items() if text.count("\n") > MAX_LINES]
    assert len(found) <= LONG_MODULES, listed(found)


def test_folders_hold_at_most_15_modules() -> None:
    held: dict[str, int] = defaultdict(int)
    for path in map(Path, texts(*PACKAGES)):
        held[str(path.parent)] += path.name != "__init__.py"
    assert {one: count for one, count in held.items() if count > LARGE_FOLDERS.get(one, MAX_MODULES)} == {}


def test_class_names_are_unique_in_a_package() -> None:
    found = []
    for package in PACKAGES:
        places: dict[str, list[str]] = defaultdict(list)
        for path, text in texts(package).items():
            for name in CLASS.findall(text):
                places[name].append(path)
        found += [f"{name} in {paths}" for name, paths in sorted(places.items()) if len(set(paths)) > 1]
    assert len(found) <= TWICE, listed(found)


def test_names_of_tests_have_at_most_ten_words() -> None:
    named = [f"{path}: {name}" for path, text in texts("tests").items() for name in TEST.findall(text)]
    assert len(named) > 1000
    found = [one for one in named if len(one.split(": ")[1].split("_")) - 1 > MAX_WORDS]
    assert len(found) <= LONG_NAMES, listed(found)


def test_only_tests_in_their_own_folder_read_shared() -> None:
    beside = re.compile(r"""parents\[3\]|["']\.\./shared""")
    own = {path: text for path, text in texts("tests").items() if path.startswith("tests/shared/")}
    found = [path for path, text in texts("tests").items() if beside.search(text)]
    assert found
    assert [path for path in found if path not in own] == []
    assert all("pytest.mark.shared" in text for text in own.values())


def test_the_counting_finds_what_it_is_for() -> None:
    text = 'class A:\n    def f(self, a, *b):\n        """What it is."""\n        def g(x, y): ...\ndef _h(a, b): ...\n'
    found = [one for one in below("a.py", ast.parse(text), public=True) if one.name != "A"]
    assert [one[1:] for one in found] == [("f", "What it is.", 2, True), ("g", "", 2, False), ("_h", "", 2, False)]
    assert RELATIVE.match(found[0].docstring)
    assert CLASS.findall(text) == ["A"]
    assert BOUND.findall("_MOST_SAID = 1\nMAX_SAID = 1\n    LEAST: int = 2\n") == ["_MOST_SAID", "LEAST"]
    assert TEST.findall("async def test_a_b() -> None:") == ["test_a_b"]
