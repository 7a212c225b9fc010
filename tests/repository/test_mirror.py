"""Tests mirror the tree: each folder and file of `tests` stands for a package or module, or has a listed reason."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Packages beside `pyrag`, by the folder of their tests.
PACKAGES = {
    "benchmarks": "benchmarks",
    "helpers": "pyrag_helpers",
    "recipes": "recipes",
    "rl": "rl/pyrag_rl",
    "sandbox": "sandbox/pyrag_sandbox",
}
OTHER_FOLDERS = {
    "container": "the image of Dockerfile, which `make test-container` builds with a container engine",
    "docs": "the pages of docs/ and the README: their code blocks, links and site",
    "hostile": "servers that misbehave, for clients of several packages",
    "mcp": "the extra `mcp`, which `make test-mcp` installs in an environment of its own",
    "otel": "the extra `otel`, which `make test-otel` installs in an environment of its own",
    "page": "the page in a browser, which `make test-page` installs in an environment of its own",
    "repository": "files of the repository outside of packages: Makefile, workflows, examples, containers",
    "shared": "data of ../shared, which a checkout need not have",
    "vllm": "the extra `vllm`, which `make test-vllm` installs in an environment of its own",
}
OTHER_FILES = {
    "conftest": "settings of all tests",
    "warm": "commands of tests, in forks of a process",
    "warm_client": "the program that asks for a fork",
    "test_house": "the form of all packages",
    "test_imports": "imports of all packages",
    "test_surface": "the public names of all packages, which surface.txt lists",
}


def is_package(name: str) -> bool:
    """Return whether a name is a folder of `pyrag` with modules or data."""
    return any(path.suffix != ".pyc" for path in (ROOT / "pyrag" / name).rglob("*") if path.is_file())


def unexplained_folders(tests: Path) -> list[str]:
    """Return folders with tests that are neither a package's nor listed."""
    folders = {path.relative_to(tests).parts[0] for path in tests.glob("*/**/*.py")}
    return sorted(name for name in folders if not is_package(name) and name not in {**PACKAGES, **OTHER_FOLDERS})


def unexplained_files(tests: Path) -> list[str]:
    """Return test files that belong to no module of `pyrag` itself and are not listed."""
    names = sorted(path.stem for path in tests.glob("*.py"))
    modules = {f"test_{path.stem}" for path in (ROOT / "pyrag").glob("*.py")}
    return [name for name in names if name not in modules and name not in OTHER_FILES]


def test_each_folder_of_tests_is_a_package_or_listed() -> None:
    assert unexplained_folders(ROOT / "tests") == []
    assert unexplained_files(ROOT / "tests") == []


def test_the_lists_name_only_what_exists() -> None:
    assert [folder for folder in PACKAGES.values() if not (ROOT / folder / "__init__.py").is_file()] == []
    assert [name for name in (*PACKAGES, *OTHER_FOLDERS) if not (ROOT / "tests" / name).is_dir()] == []
    assert [name for name in OTHER_FILES if not (ROOT / "tests" / f"{name}.py").is_file()] == []
    assert [name for name in (*PACKAGES, *OTHER_FOLDERS) if is_package(name)] == []


@pytest.mark.parametrize("name", ["documents", "config"])
def test_a_folder_of_another_name_is_found(name: str, tmp_path: Path) -> None:
    for folder in ("agents", "rl", "docs", name):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_x.py").touch()
    (tmp_path / "test_api.py").touch()
    (tmp_path / f"test_{name}.py").touch()
    assert unexplained_folders(tmp_path) == [name]
    assert unexplained_files(tmp_path) == [f"test_{name}"]
