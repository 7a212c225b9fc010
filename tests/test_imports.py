"""Imports point one way, and importing the command line stays cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "pyrag_helpers": {"pyrag", "pyrag_sandbox", "pyrag_prompts", "pyrag_rl", "recipes", "benchmarks", "tests"},
    "sandbox/pyrag_sandbox": {"pyrag", "pyrag_helpers", "pyrag_prompts", "pyrag_rl", "recipes", "benchmarks", "tests"},
    "prompts/pyrag_prompts": {"pyrag", "pyrag_helpers", "pyrag_sandbox", "pyrag_rl", "recipes", "benchmarks", "tests"},
    "pyrag": {"pyrag_rl", "recipes", "benchmarks", "tests"},
    "rl/pyrag_rl": {"recipes", "benchmarks", "tests"},
    "recipes": {"benchmarks", "tests"},
    "benchmarks": {"tests"},
}
# Layers of pyrag, lowest first: a module may import its own layer and those below it. The first of all layers are the
# packages of FORBIDDEN that pyrag may import. `docs/architecture.md` has the same table.
LAYERS = [
    {"errors", "_io"},
    {"networks", "trace"},
    {"llm"},
    {"settings"},
    {"agents"},
    {"retrieval"},
    {"tools"},
    {"episode"},
    {"methods"},
    {"runtime", "api", "extend"},
    {"embedded", "evaluation"},
    {"evolve", "reproduce"},
    {"server"},
    {"testing", "integrations"},
    {"cli", "__main__"},
]
# Plug-ins with their commands, by their packages and modules. All other modules of pyrag, and pyrag_runtime, are core.
PLUGINS = {
    "embedded engine": ("pyrag.embedded",),
    "opera": ("pyrag.methods.opera",),
    "hera": ("pyrag.methods.hera", "pyrag.evolve", "pyrag.cli.evolve"),
    "evaluation": ("pyrag.evaluation", "pyrag.cli.bench", "pyrag.cli.data"),
    "reproduction": ("pyrag.reproduce", "pyrag.cli.reproduce"),
    "server": ("pyrag.server", "pyrag.cli.server"),
    "integrations": ("pyrag.integrations",),
    "testing": ("pyrag.testing",),
    "training": ("pyrag_rl",),
    "command line": ("pyrag.cli", "pyrag.__main__"),
}
# Plug-ins that a plug-in builds upon, lazily or not.
BUILT_UPON = {
    "hera": {"evaluation"},  # pyrag evolve scores answers
    "integrations": {"evaluation"},  # inspect_ai asks the questions of sets
    "reproduction": {"evaluation"},
    "training": {"embedded engine", "opera", "evaluation"},
}
PACKAGES = {
    "pyrag": "pyrag",
    "pyrag_runtime": "pyrag_runtime.py",
    "pyrag_helpers": "pyrag_helpers",
    "pyrag_sandbox": "sandbox/pyrag_sandbox",
    "pyrag_rl": "rl/pyrag_rl",
    "pyrag_prompts": "prompts/pyrag_prompts",
    "recipes": "recipes",
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


def imported(path: Path) -> set[str]:
    """Return the names of imported modules, imported lazily or not."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
        roots = {name.split(".")[0] for name in imported(path)}
        assert not roots & FORBIDDEN[folder], f"{path} imports {roots & FORBIDDEN[folder]}"


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


def test_layers_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table: dict[int, set[str]] = {}
    for number, packages in re.findall(r"^\| (\d+) \| ((?:`[\w/.]+`(?:, )?)+) \|", text, re.MULTILINE):
        table.setdefault(int(number), set()).update(re.findall(r"`([\w/.]+)`", packages))
    lowest = {f"sandbox/{one}" if "sandbox" in one else one for one in ("pyrag_sandbox", "pyrag_helpers")}
    assert table.pop(1) == {*lowest, "prompts/pyrag_prompts", "pyrag_runtime.py"}
    parts = {number: {Path(one).stem for one in packages} for number, packages in table.items()}
    assert parts == dict(enumerate(LAYERS, start=2))


def modules() -> dict[str, Path]:
    found = {}
    for package, place in PACKAGES.items():
        if place.endswith(".py"):
            found[package] = ROOT / place
        for path in (ROOT / place).rglob("*.py"):
            parts = [package, *path.relative_to(ROOT / place).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
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


def plugin_of(module: str) -> str:
    """Return the plug-in that a module belongs to, by the longest prefix; empty for core."""
    prefixes = {prefix: plugin for plugin, all_of_them in PLUGINS.items() for prefix in all_of_them}
    matching = [prefix for prefix in prefixes if f"{module}.".startswith(f"{prefix}.")]
    return prefixes[max(matching, key=len)] if matching else ""


def imports_of_plugins() -> set[tuple[str, str, str, str]]:
    """Return importing module and its plug-in, imported module and its plug-in, where the plug-ins differ."""
    graph = {module: names for module, names in import_graph().items() if not module.startswith("recipes")}
    pairs = ((module, name) for module, names in graph.items() for name in names)
    found = {(module, plugin_of(module), name, plugin_of(name)) for module, name in pairs}
    return {one for one in found if one[3] and one[1] != one[3]}


def test_core_imports_no_plugin() -> None:
    assert [one for one in imports_of_plugins() if not one[1]] == []


def test_command_line_imports_no_plugin() -> None:
    assert [one for one in imports_of_plugins() if one[1] == "command line"] == []


def test_plugins_import_only_those_they_build_upon() -> None:
    others = [one for one in imports_of_plugins() if one[1] not in ("", "command line")]
    commands = [one for one in others if one[3] == "command line"]
    assert {one[0].split(".")[1] for one in commands} <= {"cli", "embedded"}  # commands, and scripts of training
    assert {(one[1], one[3]) for one in others if one not in commands} == {
        (plugin, other) for plugin, all_of_them in BUILT_UPON.items() for other in all_of_them
    }


def test_every_plugin_is_registered_by_entry_points() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [value.partition(":")[0] for group in project["entry-points"].values() for value in group.values()]
    named += [value.partition(":")[0] for value in project["scripts"].values()]
    registered = {plugin_of(module) for module in named}
    # Integrations are imported by their users, checks by their tests.
    assert registered - {""} == PLUGINS.keys() - {"integrations", "testing"}


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


def test_help_lists_all_commands_and_imports_nothing_heavy() -> None:
    from pyrag._io.plugins import OWN

    code = """
import sys
sys.path[:0] = sys.argv[1:]
sys.argv[:] = ["pyrag", "--help"]
from pyrag.cli.main import main
try:
    main()
finally:
    print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)
"""
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    commands = re.findall(r"^  ([a-z-]+)  ", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert sorted(commands) == sorted(OWN["commands"])
    assert not set(done.stderr.split()) & HEAVY
