"""What is said about commands is so: help pages are whole, and every command line of the documents exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from pyrag.cli.app import app

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "rl/configs").glob("*.yaml"))
COMMANDS: Any = typer.main.get_command(app)
_WIDTH = 78  # of a help page on a terminal of 80 columns, less its margin


def everything(command: Any = COMMANDS, *path: str) -> Iterator[tuple[str, Any]]:
    yield " ".join(("pyrag", *path)), command
    for name, one in getattr(command, "commands", {}).items():
        yield from everything(one, *path, name)


PAGES = list(everything())


@pytest.mark.parametrize(("path", "command"), PAGES, ids=[path for path, _ in PAGES])
def test_help_is_whole(path: str, command: Any) -> None:
    inside = getattr(command, "commands", {})
    for name, one in inside.items():
        shown = one.get_short_help_str(_WIDTH - 6 - max(map(len, inside)))
        assert shown, f"{path} {name} is not explained"
        assert not shown.endswith("..."), f"{path} {name} is cut: make its first sentence shorter than {shown!r}"
    for one in command.params:
        assert one.help, f"{path} {one.name} is not explained"


def command_lines(text: str) -> Iterator[str]:
    """Lines of blocks, continued ones joined, and code within sentences."""
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        found = re.match(r"(?:#   |\$ |    )((?:\S+/|CUDA\S+ |PYRAG\S+ )?pyrag .*)", line)
        if found:
            parts = re.split(r"&&|;", re.sub(r"\s#\s.*", "", found[1]))
            yield from (part for part in parts if "pyrag " in part)
    yield from re.findall(r"`(pyrag [^`]+)`", re.sub(r"```.*?```", "", joined, flags=re.DOTALL))


LINES = [(path.name, line.strip()) for path in DOCUMENTS for line in command_lines(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("document", "line"), LINES)
def test_a_documented_command_exists(document: str, line: str) -> None:
    words = shlex.split(line.replace("…", "x"), comments=True)
    while not words[0].endswith("pyrag"):
        words.pop(0)
    words, command = words[1:], COMMANDS
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if command is COMMANDS.commands["index"] and words:  # as the command line itself does
        command = command.commands["build"]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "--debug"}
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known, f"{document}: {line}"
    of_example = words[:1] == ["inhabitants"]  # of examples/pyrag-plugin
    assert command is not COMMANDS or used or not words or of_example, f"{document}: there is no command in {line!r}"


def test_there_are_documented_commands() -> None:
    assert len(LINES) > 80
