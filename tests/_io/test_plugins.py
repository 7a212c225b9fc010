"""The example of a plug-in package, installed elsewhere and used by the command line; broken ones beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag._io import plugins
from pyrag.agents.engine import about_engine, can_write
from pyrag.agents.protocol import Reading
from pyrag.cli.commands import PackageCommands
from pyrag.errors import ConfigError, DataError
from pyrag.llm.spec import open_chat_model
from pyrag.methods.registry import MODULES, check_writer, get_method
from pyrag.retrieval.documents.model import SUFFIXES
from pyrag.retrieval.documents.reading import read_passages
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.retrieval.open import is_remote, open_retriever
from pyrag.testing import ScriptedModel
from pyrag.tools.open import open_tools
from pyrag.trace.model import Passage
from tests import warm
from tests.cli.conftest import COMMAND, environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "pyrag-plugin"
BROKEN = """[pyrag.methods]
pyrag = town_broken.good
broken = town_broken.missing
best-passage = town_broken.good
[pyrag.retrievers]
raises = town_broken.good:raises
number = town_broken.good:NUMBER
nothing = town_broken.good:nothing
[pyrag.engines]
mute = town_broken.good:nothing
exits = town_broken.exits:open
[pyrag.documents]
bad = town_broken.good:raises
txt = town_broken.good:raises
[pyrag.tools]
sql = town_broken.good:nothing
[pyrag.commands]
lost = town_broken.missing:command
number = town_broken.good:NUMBER
serve = town_broken.good:nothing
"""


def write_dist(folder: Path, name: str, entry_points: str) -> None:
    about = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(entry_points)


def install(folder: Path) -> None:
    """As pip does it; without a build backend, with what pip would write."""
    if find_spec("pip") and find_spec("hatchling"):
        options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=True)
        return
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    write_dist(folder, project["name"], "\n".join(groups))
    shutil.copytree(EXAMPLE / "town_plugin", folder / "town_plugin")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    return folder


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(site))
    plugins.forget()
    yield site
    monkeypatch.undo()
    plugins.forget()


@pytest.fixture
def broken(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dist(tmp_path / "more", "town-broken", BROKEN)
    package = tmp_path / "more" / "town_broken"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "good.py").write_text(
        "NUMBER = 7\n\n\ndef raises(*given):\n    raise ValueError('no good')\n\n\n"
        "def nothing(*given):\n    return object()\n"
    )
    (package / "exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path / "more"))
    plugins.forget()


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(site)])
    return warm.run([*COMMAND[1:], *arguments], folder, env, timeout=120)


def test_each_kind_works_from_the_command_line(site: Path, tmp_path: Path) -> None:
    asked = run(site, tmp_path, "ask", "--json", "--method", "best-passage", "Who is Jed Hoyer?")
    assert json.loads(asked.stdout)["method"] == "best-passage", asked.stderr
    (tmp_path / "books.json").write_text('{"Mill": "The Mill was written by Ada Berg .", "Town": "A town ."}')
    asked = run(site, tmp_path, "ask", "--json", "--retriever", "shelf:books.json", "Who wrote The Mill?")
    assert json.loads(asked.stdout)["retriever"] == "shelf:books.json", asked.stderr
    asked = run(site, tmp_path, "ask", "--method", "direct", "--llm", "parrot:Rome", "--tools", "population", "Where?")
    assert asked.stdout.strip() == "Rome", asked.stderr
    (tmp_path / "council.minutes").write_text("2024-05-02 Ann: The mill is sold.\n2024-05-03 Bo: The mill burns.\n")
    assert run(site, tmp_path, "index", "council.minutes", "--out", "ix").returncode == 0
    assert run(site, tmp_path, "inhabitants", "Alpha").stdout == "1200\n"
    searched = run(site, tmp_path, "index", "search", "ix", "mill", "--where", 'speaker = "Bo"', "--json")
    assert [one["metadata"]["date"] for one in json.loads(searched.stdout)] == ["2024-05-03"]


def test_the_doctor_names_packages(site: Path, tmp_path: Path) -> None:
    said = run(site, tmp_path, "doctor").stdout
    for line in ("methods of packages: best-passage (town-plugin)", "retrievers of packages: shelf (town-plugin)"):
        assert f"ok   {line}" in said


def test_names_are_found_without_an_import(installed: Path) -> None:
    assert {kind: plugins.names(kind) for kind in plugins.OWN} == {
        "methods": ("best-passage",), "retrievers": ("shelf",), "engines": ("parrot",), "documents": ("minutes",),
        "tools": ("population",), "commands": ("inhabitants",),
    }  # fmt: skip
    assert is_remote("shelf:books.json")
    assert not is_remote("shelf-of-mine")
    assert not {name for name in sys.modules if name.startswith("town_plugin.") and name.endswith("minutes")}


@pytest.mark.usefixtures("broken")
def test_broken_parts_are_named_and_break_nothing() -> None:
    assert "best-passage" not in plugins.names("methods")
    assert plugins.problems("methods") == [
        "the method pyrag of town-broken is left out: the name is pyrag's own",
        "the method best-passage is left out: town-broken and town-plugin both claim the name",
    ]
    assert plugins.problems("tools") == ["the tool sql of town-broken is left out: the name is pyrag's own"]
    for open_part, says in (
        (lambda: open_retriever("raises:x"), r"the retriever raises:x of town-broken cannot be opened \(ValueError"),
        (lambda: open_retriever("number"), r"number of town-broken is not a function open\(rest\)"),
        (lambda: open_retriever("nothing"), "object is not a retriever"),
        (lambda: open_chat_model("mute:x"), "the engine mute of town-broken has no name"),
        (lambda: open_chat_model("exits:x"), r"exits of town-broken cannot be loaded \(SystemExit"),
        (lambda: open_chat_model("nope:x"), "there is no engine 'nope'.*parrot"),
    ):
        with pytest.raises(ConfigError, match=says):
            open_part()
    assert [one.name for one in open_tools(["population", "people=population"])] == ["population", "people"]


@pytest.mark.usefixtures("broken")
def test_a_broken_command_is_listed_and_fails_if_used() -> None:
    commands = PackageCommands({})
    assert {"inhabitants", "bench", "lost", "number"} <= set(commands)
    for name, says in (
        ("lost", r"the command lost of town-broken cannot be loaded \(ModuleNotFoundError"),
        ("number", "the command number of town-broken is neither a function nor a typer.Typer"),
    ):
        assert commands[name].get_short_help_str().startswith("Cannot be used:")
        with pytest.raises(ConfigError, match=says):
            commands[name].main(["--any", "thing"], standalone_mode=False)
    assert plugins.problems("commands") == ["the command serve of town-broken is left out: the name is pyrag's own"]
    assert commands["serve"].get_short_help_str(80) == "Serve questions, passages and traces over HTTP."


@pytest.mark.usefixtures("installed")
def test_a_command_is_loaded_when_it_is_used() -> None:
    commands = PackageCommands({"ask": "its own"})
    assert (commands["ask"], "inhabitants" in commands) == ("its own", True)
    sys.modules.pop("town_plugin.inhabitants", None)
    assert set(commands) >= {"inhabitants"}
    assert "town_plugin.inhabitants" not in sys.modules
    assert commands["inhabitants"].name == "inhabitants"
    assert "town_plugin.inhabitants" in sys.modules


FIXED = """
from dataclasses import replace

from pyrag.extend import Engine, Reading


class Reader:
    async def answer(self, query, passages):
        return Reading("Ada", known=True, citations=(0,))


def open_agents(rest, settings):
    from pyrag.embedded import embedded_agents

    return replace(embedded_agents(), name=f"fixed:{rest}", answerer=Reader())


def fail(rest, settings):
    raise ValueError("no such folder")


BROKEN = Engine(name="fails", open=fail, about=str)
EMPTY = Engine(name="empty", open=lambda rest, settings: None, about=str)
ENGINE = Engine(name="fixed", open=open_agents, about="always {}".format, languages=("Latin",), reads=str.isupper)
"""


def test_an_engine_of_a_package_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dist(
        tmp_path,
        "fixed-engine",
        "[pyrag.engines]\nfixed = fixed_engine:ENGINE\nfails = fixed_engine:BROKEN\nempty = fixed_engine:EMPTY\n",
    )
    (tmp_path / "fixed_engine.py").write_text(FIXED)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.forget()
    try:
        assert (about_engine("fixed:Ada"), can_write("fixed:Ada")) == ("always Ada", False)
        shelf = InMemoryRetriever([Passage("1", "Mill", "The mill was built by Ada Berg.")])
        with PyRAG("fixed:Ada", retriever=shelf) as rag:
            trace = rag.ask("Who built the mill?")
        with pytest.raises(ConfigError, match=r"fails of fixed-engine cannot be opened \(ValueError: no such folder\)"):
            PyRAG("fails:x")
        with pytest.raises(ConfigError, match="empty of fixed-engine returned a NoneType: its open must return"):
            PyRAG("empty")
        with pytest.raises(ConfigError, match="method direct needs a language model"):
            check_writer(get_method("direct"), can_write=can_write("fixed"))
    finally:
        monkeypatch.undo()
        plugins.forget()
    assert (trace.engine, trace.answer.text, trace.usage.model_calls) == ("fixed:Ada", "Ada", 0)
    assert any("the fixed engine reads Latin only" in warning for warning in trace.warnings)


@pytest.mark.usefixtures("broken")
def test_a_broken_reader_is_the_fault_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.bad").write_text("x")
    with pytest.raises(DataError, match=r"a\.bad: the reader of town-broken failed \(ValueError: no good\)"):
        list(read_passages([tmp_path / "docs" / "a.bad"]))
    (tmp_path / "docs" / "a.txt").write_text("read by pyrag itself")
    assert [one.text for one in read_passages([tmp_path / "docs" / "a.txt"])] == ["read by pyrag itself"]


def test_pyrags_own_names_are_those_that_it_has() -> None:
    assert set(plugins.OWN["methods"]) == {*MODULES, "hera", "opera"}
    assert {f".{one}" for one in plugins.OWN["documents"]} >= set(SUFFIXES)


class Reader:
    """An Answer agent."""

    async def answer(self, query: str, passages: object) -> Reading:
        return Reading("Ada", known=True, citations=(0,))


def test_objects_take_the_place_of_specs() -> None:
    shelf = InMemoryRetriever([Passage("1", "Mill", "The mill was built by Ada Berg.")])
    with PyRAG(ScriptedModel(["<answer>Rome</answer>"]), retriever=shelf, method="direct") as rag:
        trace = rag.ask("Where?")
    assert (trace.answer.text, trace.error) == ("Rome", None)
    with PyRAG(retriever=shelf, answerer=Reader()) as rag:
        trace = rag.ask("Who built the mill?")
    assert trace.answer.text == "Ada"
    assert trace.engine == "embedded (answer: Reader)"


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ({"llm": object()}, "the object given as llm has no name"),
        (
            {"llm": type("Named", (), {"name": "x"})()},
            r"the object given as llm has no async complete\(messages, sampling\)",
        ),
        (
            {"answerer": 5},
            r"int is not an answerer: give an object with async answer\(query, passages\)",
        ),
        ({"retriever": object()}, r"not a retriever: give .* async retrieve\(query, topk\)"),
    ],
)
def test_objects_that_lack_a_method_are_refused(objects: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        PyRAG(**objects)  # type: ignore[arg-type]
