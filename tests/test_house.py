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
PACKAGES = ("pyrag", "sandbox/pyrag_sandbox", "rl/pyrag_rl")
NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
MAX_WORDS = 10  # of a test's name
MAX_LINES = 400  # of a module
MAX_MODULES = 15  # of a folder
RELATIVE = re.compile(r"(What|Which|Whether|How|Where|Who|Whose|Whom|When|Why|That|Whatever|Whoever)\b")
BOUND = re.compile(r"_?(MOST|LEAST|LONGEST|SHORTEST|FEWEST|FEW|MANY|ENOUGH)(_[A-Z0-9_]+)?")

RELATIVE_DOCSTRINGS = 193
WITHOUT_ARGS = 403
BOUNDS = 13
LONG_MODULES = 2
TWICE = 11
LONG_NAMES = 44
LARGE_FOLDERS = {"pyrag/methods/hera": 16}


class Function(NamedTuple):
    path: str
    name: str
    docstring: str
    arguments: int
    public: bool


@cache
def trees(*folders: str) -> dict[str, ast.Module]:
    """Syntax trees of all modules in these folders, by path."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in found}


def functions(path: str, node: ast.AST, *, public: bool, depth: int = 0) -> Iterator[Function]:
    """All functions below a node; those inside of functions count as private."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            given = child.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = sum(name not in ("self", "cls") for name in names) + bool(given.vararg) + bool(given.kwarg)
            overloaded = any("overload" in ast.unparse(one) for one in child.decorator_list)
            shown = public and depth < 2 and not child.name.startswith("_") and not overloaded
            yield Function(path, child.name, ast.get_docstring(child) or "", count, shown)
            yield from functions(path, child, public=False, depth=2)
        elif isinstance(child, ast.ClassDef):
            shown = public and not child.name.startswith("_")
            yield from functions(path, child, public=shown, depth=depth + 1)
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from functions(path, child, public=public, depth=depth)


@cache
def all_functions() -> tuple[Function, ...]:
    hidden = re.compile(r"/_(?!_init__|_main__|io/)")
    found = trees(*PACKAGES).items()
    return tuple(one for path, tree in found for one in functions(path, tree, public=not hidden.search(path)))


def docstrings(*folders: str) -> Iterator[tuple[str, str]]:
    for path, tree in trees(*folders).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, ast.get_docstring(node) or ""


def listed(found: list[str]) -> str:
    return f"{len(found)}: " + "; ".join(found[:20])


def test_docstrings_open_with_a_verb_or_noun() -> None:
    found = [
        f"{path}: {text.splitlines()[0]}" for path, text in docstrings(*PACKAGES, "prompts") if RELATIVE.match(text)
    ]
    assert len(found) <= RELATIVE_DOCSTRINGS, listed(found)


def test_public_functions_document_their_arguments() -> None:
    found = [
        f"{one.path}: {one.name}"
        for one in all_functions()
        if one.public and one.arguments > 1 and "Args:" not in one.docstring
    ]
    assert len(found) <= WITHOUT_ARGS, listed(found)


def test_bounds_are_called_max_and_min() -> None:
    found = [
        f"{path}: {node.id}"
        for path, tree in trees(*PACKAGES, "benchmarks").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and BOUND.fullmatch(node.id)
    ]
    assert len(found) <= BOUNDS, listed(found)


def test_modules_stay_below_400_lines() -> None:
    found = [path for path in trees(*PACKAGES) if (ROOT / path).read_text(encoding="utf-8").count("\n") > MAX_LINES]
    assert len(found) <= LONG_MODULES, listed(found)


def test_folders_hold_at_most_15_modules() -> None:
    held: dict[Path, int] = defaultdict(int)
    for path in map(Path, trees(*PACKAGES)):
        held[path.parent] += path.name != "__init__.py"
    allowed = LARGE_FOLDERS.get
    assert {str(one): count for one, count in held.items() if count > allowed(str(one), MAX_MODULES)} == {}


def test_class_names_are_unique_in_a_package() -> None:
    found = []
    for package in PACKAGES:
        places: dict[str, set[str]] = defaultdict(set)
        for path, tree in trees(package).items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name].add(path)
        found += [f"{name} in {sorted(paths)}" for name, paths in sorted(places.items()) if len(paths) > 1]
    assert len(found) <= TWICE, listed(found)


def test_names_of_tests_have_at_most_ten_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in NAME.findall(path.read_text(encoding="utf-8"))
        if len(name.split("_")) - 1 > MAX_WORDS
    ]
    assert len(found) <= LONG_NAMES, listed(found)


def test_only_tests_in_their_own_folder_read_shared() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    beside = re.compile(r"""parents\[3\]|["']\.\./shared""")
    own = ROOT / "tests/shared"
    found = [path for path, text in texts.items() if beside.search(text)]
    assert found
    assert [path for path in found if own not in path.parents] == []
    assert all("pytest.mark.shared" in text for path, text in texts.items() if own in path.parents)


def test_the_counting_finds_what_it_is_for() -> None:
    text = 'class A:\n    def f(self, a, *b):\n        """What it is."""\n        def g(x, y): ...\ndef _h(a, b): ...\n'
    found = list(functions("a.py", ast.parse(text), public=True))
    assert [(one.name, one.arguments, one.public) for one in found] == [
        ("f", 2, True),
        ("g", 2, False),
        ("_h", 2, False),
    ]
    assert RELATIVE.match(found[0].docstring)
    assert BOUND.fullmatch("_MOST_SAID")
    assert not BOUND.fullmatch("MAX_SAID")
