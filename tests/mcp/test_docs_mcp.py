"""The blocks of docs/mcp.md: configurations whose commands and options exist, and a client that asks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from pyrag.cli.app import app
from pyrag.server.config import read_indexes
from tests.cli.conftest import environment

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


def test_the_client_asks(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    (source,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    program = tmp_path / "pyrag"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pyrag "$@"\n')
    program.chmod(0o755)
    (tmp_path / "client.py").write_text(source, encoding="utf-8")
    variables = environment(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run([sys.executable, "client.py"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Alfonso Cuarón True", "Gravity (2013 film)"]
