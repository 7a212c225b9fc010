"""Imports point one way, and importing the command line stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "pyrag_helpers": {"pyrag", "pyrag_sandbox", "pyrag_prompts", "pyrag_rl", "benchmarks", "tests"},
    "sandbox/pyrag_sandbox": {"pyrag", "pyrag_helpers", "pyrag_prompts", "pyrag_rl", "benchmarks", "tests"},
    "prompts/pyrag_prompts": {"pyrag", "pyrag_helpers", "pyrag_sandbox", "pyrag_rl", "benchmarks", "tests"},
    "pyrag": {"pyrag_rl", "benchmarks", "tests"},
    "rl/pyrag_rl": {"benchmarks", "tests"},
    "benchmarks": {"tests"},
}
# The doors from the command line to training: their functions may import what its start-up may not.
DOORS = {f"pyrag/cli/train/{name}.py": {"pyrag_rl"} for name in ("app", "data")}
# Layers of pyrag, lowest first: a module may import its own layer and those below it.
LAYERS = [
    {"errors", "_io"},
    {"networks", "trace"},
    {"llm"},
    {"settings"},
    {"agents"},
    {"embedded"},
    {"retrieval"},
    {"tools"},
    {"episode"},
    {"methods"},
    {"evaluation"},
    {"runtime", "api", "extend"},
    {"evolve", "reproduce"},
    {"server"},
    {"testing", "integrations"},
    {"cli"},
    {"__main__"},
]
# Plug-ins: core imports none of them, lazily or for typing.
PLUGINS = (
    "pyrag.embedded", "pyrag.methods.opera", "pyrag.methods.hera", "pyrag.evolve", "pyrag.server", "pyrag.evaluation",
    "pyrag.reproduce", "pyrag.integrations", "pyrag.testing", "pyrag.cli", "pyrag_rl",
)  # fmt: skip
# Imports from core that remain, to be removed: the test fails as well if one of them is gone and still listed.
REMAINING = {
    ("pyrag.__main__", "pyrag.cli"),  # `python -m pyrag` is the command line
    ("pyrag.retrieval.rerank", "pyrag.embedded"),
    ("pyrag.runtime.engines", "pyrag.embedded"),
    ("pyrag.runtime.run", "pyrag.embedded"),
}
PACKAGES = {
    "pyrag": "pyrag",
    "pyrag_helpers": "pyrag_helpers",
    "pyrag_sandbox": "sandbox/pyrag_sandbox",
    "pyrag_rl": "rl/pyrag_rl",
    "pyrag_prompts": "prompts/pyrag_prompts",
}
HEAVY = {
    "aiohttp",
    "onnxruntime",
    "tokenizers",
    "tantivy",
    "numpy",
    "RestrictedPython",
    "greenlet",
    "faiss",
    "torch",
    "msgspec",
    "opentelemetry",
    "openai",
    "fastapi",
    "uvicorn",
}


def imported(path: Path, *, at_start: bool = False) -> set[str]:
    """Names of imported modules; `at_start`, of those alone that importing the module imports."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_start else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_packages_import_one_way(folder: str) -> None:
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        forbidden = FORBIDDEN[folder] - DOORS.get(str(path.relative_to(ROOT)), set())
        roots = {name.split(".")[0] for name in imported(path)}
        assert not roots & forbidden, f"{path} imports {roots & forbidden}"


def test_doors_are_closed_at_start() -> None:
    for path, behind in DOORS.items():
        assert not {name.split(".")[0] for name in imported(ROOT / path, at_start=True)} & behind


def layer_of(part: str) -> int | None:
    return next((level for level, parts in enumerate(LAYERS) if part in parts), None)


def test_layers_of_pyrag_import_downwards() -> None:
    for path in (ROOT / "pyrag").rglob("*.py"):
        part = path.relative_to(ROOT / "pyrag").parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        own = layer_of(part)
        assert own is not None, f"{part} has no layer: add it to LAYERS"
        for name in imported(path):
            pieces = name.split(".")
            if pieces[0] == "pyrag" and len(pieces) > 1:
                other = layer_of(pieces[1])
                assert other is not None, f"{path} imports {name}, which has no layer"
                assert other <= own, f"{path} (layer {own}) imports {name} (layer {other})"


def test_nothing_of_pyrag_imports_its_testing_package() -> None:
    for folder in PACKAGES.values():
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.is_relative_to(ROOT / "pyrag/testing")
            assert inside or not any(name.startswith("pyrag.testing") for name in imported(path)), path


def modules() -> dict[str, Path]:
    found = {}
    for package, folder in PACKAGES.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph() -> dict[str, set[str]]:
    """For each module those it imports, lazily and for typing too."""
    known, graph = modules(), {}
    for module, path in known.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                full = {f"{node.module}.{alias.name}": node.module for alias in node.names}
                names |= {one if one in known else module_ for one, module_ in full.items()}
        graph[module] = (names & known.keys()) - {module}
    return graph


def plugin_of(module: str) -> str | None:
    return next((plugin for plugin in PLUGINS if f"{module}.".startswith(f"{plugin}.")), None)


def test_core_imports_no_further_plugin() -> None:
    core = {module: names for module, names in import_graph().items() if f"{module}.".startswith("pyrag.")}
    imports = {(module, plugin_of(name)) for module, names in core.items() if not plugin_of(module) for name in names}
    assert {pair for pair in imports if pair[1]} == REMAINING


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for name in graph[todo.pop()] - seen:
            seen.add(name)
            todo.append(name)
    return seen


def test_no_import_circle() -> None:
    graph = import_graph()
    assert len(graph) > 100
    ahead = {module: reachable(graph, module) for module in graph}
    circles = {
        frozenset(other for other in ahead[module] if module in ahead[other])
        for module in graph
        if module in ahead[module]
    }
    assert not circles


@pytest.mark.parametrize("module", ["pyrag", "pyrag.cli.app", "pyrag_sandbox"])
def test_nothing_heavy_is_imported_at_start(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(done.stdout.split()) & HEAVY


def test_questions_without_tools_import_no_seams() -> None:
    code = """
import sys
sys.path[:0] = sys.argv[1:]
from pyrag import PyRAG
with PyRAG() as rag:
    rag.ask("When was Jed Hoyer born?")
print(*[name for name in sys.modules if name.startswith(("pyrag.tools", "pyrag.testing"))])
"""
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_public_names_are_what_all_says() -> None:
    import pyrag

    assert all(hasattr(pyrag, name) for name in pyrag.__all__)
