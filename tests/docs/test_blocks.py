"""Every block of README and docs runs as it stands, page by page, in a folder with what a reader would have there.

Addresses of model and search servers lead to a scripted one. A block that cannot run here is marked with its reason:
`<!-- not run: REASON -->` on the line before it.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import pytest

from pyrag.retrieval.index import update_index
from tests import warm
from tests.cli.conftest import environment

from .blocks import (
    LANGUAGES,
    PAGES,
    Block,
    blocks_of,
    commands_of,
    expected_prints,
    filled_in,
    indented_commands,
    marks_in,
    name_of,
    shown_output,
)
from .servers import serving

NOTES = {
    "mill.md": "---\nteam: ops\nyear: 2021\n---\n# The mill\n\nThe mill of Alpha was founded by Ada Berg.\n",
    "ada.md": "---\nteam: hr\nyear: 2019\n---\n# Ada Berg\n\nAda Berg was born in Uppsala.\n",
    "orders.csv": "customer,amount\nAda,3\nBo,4\n",
}
HOTPOT = [
    {
        "_id": "1",
        "question": "When was Jed Hoyer born?",
        "answer": "7 December 1973",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["Jed Hoyer", 0]],
        "context": [["Jed Hoyer", ["Jed Hoyer was born on December 7, 1973."]]],
    }
]
OWN_SET = {
    "questions.jsonl": {"id": "q1", "question": "When was Jed Hoyer born?", "answers": ["7 December 1973"]},
    "corpus.jsonl": {"id": "p1", "title": "Jed Hoyer", "text": "Jed Hoyer was born on December 7, 1973."},
}
SECONDS = 120  # of a command, on a busy machine
SERVER = re.compile(r"pyrag (serve|serve-retriever|mcp .*--http)\b")
PORT = re.compile(r" --port \d+")
PROGRAM = re.compile(r"^final_answer = ", re.M)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture
def reader(tmp_path: Path, servers: str) -> Iterator[Reader]:
    reader = Reader(tmp_path, servers)
    yield reader
    reader.stop()


class Reader:
    """Somebody who reads a page in a folder of notes, and runs its blocks from top to bottom."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder = folder / "work"
        self._servers = servers
        self._server: subprocess.Popen[bytes] | None = None
        self._port = "8010"
        self.variables = environment(OPENAI_API_KEY="a-key-of-the-test")
        self._prepare(folder / "bin")

    def run(self, block: Block) -> None:
        if block.language == "python":
            self._run_python(block)
        elif block.language == "toml" and block.text.startswith(("[tool.", "# pyproject.toml")):
            (self.folder / "pyproject.toml").write_text(block.text, encoding="utf-8")
        for number, command in enumerate(commands_of(block) if block.language == "console" else []):
            self._run_command(command, number, block)

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(SECONDS)
            self._server = None

    def _run_python(self, block: Block) -> None:
        source = filled_in(block.text, self._servers, self._port)
        name = re.match(r"# (\w+\.py)\n", source)
        file = self.folder / (name[1] if name else f"block_{block.line}.py")
        file.write_text(source, encoding="utf-8")
        if name and PROGRAM.search(source) and "import " not in source:
            return  # a program, which a later `pyrag run` runs
        if file.name.startswith("test_"):
            self._finish([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name], block)
            return
        printed = self._finish(["python", file.name], block).stdout
        expected = expected_prints(source)
        assert printed.splitlines()[: len(expected)] == expected, block.name

    def _run_command(self, command: str, number: int, block: Block) -> None:
        command = filled_in(command, self._servers, self._port)
        if exported := re.match(r"export (\w+)=(\S+)", command):
            self.variables[exported[1]] = exported[2]
        elif SERVER.match(command):
            self._serve(command, block)
        else:
            shown = shown_output(block, number)
            done = self._finish(["bash", "-c", command], block, fails=shown.startswith("pyrag: "))
            asked = re.match(r"(?:\w+=\S+ )*pyrag ask ", command) and "--json" not in command
            assert not asked or done.stdout.strip() not in ("", "unknown"), f"{block.name}: {command} answers nothing"
            printed = done.stdout + done.stderr
            lines = [line.strip().removesuffix(" …") for line in shown.splitlines() if line.strip()]
            missing = [line for line in lines if line not in printed]
            assert missing == [], f"{block.name}: {command} prints {printed}"

    def _serve(self, command: str, block: Block) -> None:
        self.stop()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        arguments = PORT.sub("", command.partition("#")[0].strip()).removeprefix("pyrag ")
        line = f'exec "{sys.executable}" -m pyrag {arguments} --port {self._port}'
        log = self.folder / "server.log"
        with log.open("wb") as output:
            self._server = subprocess.Popen(
                ["bash", "-c", line], cwd=self.folder, env=self.variables, stdout=output, stderr=output
            )
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", int(self._port))) == 0:
                    return
            time.sleep(0.1)
        pytest.fail(f"{block.name}: {line} serves nothing: {log.read_text(errors='replace')}")

    def _finish(self, line: list[str], block: Block, *, fails: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            line,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert (done.returncode != 0) == fails, f"{block.name}: {line[-1]}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
        return done

    def _add_program(self, file: Path, line: str) -> None:
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    def _prepare(self, programs: Path) -> None:
        programs.mkdir(parents=True)
        for name, arguments in (("pyrag", ["-m", "pyrag"]), ("python", [])):
            self._add_program(programs / name, warm.program(*arguments))
        # `pip install .` installs beside the pages' modules and downloads nothing.
        options = (
            f'--quiet --disable-pip-version-check --no-build-isolation --no-deps --target "{self.folder}/installed"'
        )
        self._add_program(programs / "pip", f'exec "{sys.executable}" -m pip "$@" {options}')
        self.folder.mkdir()
        self.variables["PATH"] = f"{programs}{os.pathsep}{self.variables['PATH']}"
        paths = [str(self.folder), f"{self.folder}/installed", self.variables["PYTHONPATH"]]
        self.variables["PYTHONPATH"] = os.pathsep.join(paths)
        notes = self.folder / "notes"
        notes.mkdir()
        for name, text in NOTES.items():
            (notes / name).write_text(text, encoding="utf-8")
        with chdir(self.folder):  # sources are named as a reader's own command would name them
            for index in ("my-index", "notes/.pyrag"):
                update_index([Path("notes")], Path(index))
        (self.folder / "more").mkdir()
        (self.folder / "more" / "harbour.md").write_text("# Harbour\n\nThe harbour opened in 1891.\n")
        (self.folder / "questions.txt").write_text("When was Jed Hoyer born?\nWho directed Gravity?\n")
        mine = self.folder / "data/mine"
        mine.mkdir(parents=True)
        for name, row in OWN_SET.items():
            (mine / name).write_text(json.dumps(row) + "\n")
        (self.folder / "hotpot_dev_distractor_v1.json").write_text(json.dumps(HOTPOT))
        with closing(sqlite3.connect(self.folder / "shop.db")) as shop:
            shop.executescript(
                "CREATE TABLE orders (item TEXT, day TEXT); INSERT INTO orders VALUES ('x', '2024-05-02')"
            )
        (self.folder / "my_tools.py").write_text(
            'POPULATION = {"Alpha": 1200, "Gamma": 800}\n\n\ndef population(city: str) -> int | None:\n'
            '    """Inhabitants of a city."""\n    return POPULATION.get(city)\n'
        )


RUNNABLE = [page for page in PAGES if any(not one.reason and one.language != "text" for one in blocks_of(page))]


# Pages whose blocks take long, and whose subjects have tests of their own.
SLOW = {
    "bench.md", "concepts/systems.md", "extending/retriever.md", "methods.md", "opera.md", "tools.md",
    "tutorials/method.md", "tutorials/model-server.md", "tutorials/table.md", "typed-results.md",
}  # fmt: skip


def _marked(page: Path) -> Any:
    name = name_of(page)
    return pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize("page", [_marked(page) for page in RUNNABLE])
def test_blocks_of_a_page_run(page: Path, reader: Reader) -> None:
    for block in blocks_of(page):
        if not block.reason:
            reader.run(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_of_data_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "ini":
            configparser.ConfigParser(strict=False, interpolation=None).read_string(block.text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_is_marked_with_a_reason(page: Path) -> None:
    blocks = blocks_of(page)
    assert [block.name for block in blocks if block.language not in LANGUAGES] == []
    assert [block.name for block in blocks if block.language == "console" and not commands_of(block)] == []
    assert sum(bool(block.reason) for block in blocks) == marks_in(page)
    assert all(len(block.reason.split()) >= 3 for block in blocks if block.reason)
    assert indented_commands(page) == []


def test_every_block_runs_that_needs_no_gpu() -> None:
    code = [block for page in PAGES for block in blocks_of(page) if block.language in ("python", "console")]
    needs = re.compile(r"GPU|model|weights|trains|verl|checkpoint|minutes|index of|network|server|targets|paid")
    unexplained = [block.name for block in code if block.reason and not needs.search(block.reason)]
    assert len(code) > 50
    assert len(unexplained) <= 0.15 * len(code), unexplained
