"""The configuration blocks of docs/mcp.md: JSON whose commands and options exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer

from pyrag.cli.app import app
from pyrag.server.config import read_indexes

TEXT = (Path(__file__).parents[2] / "docs/mcp.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]


def servers() -> list[dict[str, Any]]:
    return [block.get("mcpServers", block.get("servers"))["pyrag"] for block in BLOCKS]


def test_there_is_a_block_for_three_assistants() -> None:
    assert [name in TEXT for name in ("Claude Desktop", "Claude Code", "VS Code")] == [True] * 3
    assert [next(iter(set(block) - {"inputs"})) for block in BLOCKS] == ["mcpServers", "mcpServers", "servers"]


def test_their_commands_are_those_of_pyrag() -> None:
    command = typer.main.get_command(app).commands["mcp"]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    started = [one for one in servers() if "command" in one]
    assert len(started) == 2
    for one in started:
        assert Path(one["command"]).name == "pyrag"
        name, *arguments = one["args"]
        assert name == "mcp"
        assert set(arguments[::2]) <= known
        assert list(read_indexes(arguments[1:2])) == ["notes"]


def test_the_one_over_http_sends_a_key() -> None:
    (one,) = [one for one in servers() if "url" in one]
    assert (one["type"], one["url"]) == ("http", "http://127.0.0.1:8011/mcp")
    assert one["headers"]["Authorization"].startswith("Bearer ${input:" + BLOCKS[2]["inputs"][0]["id"])
