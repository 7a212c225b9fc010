"""Dockerfile, compose.yaml and the systemd unit name what exists: files, commands and options."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import typer
import yaml

from pyrag.cli.app import app
from pyrag.server.app import create_app
from pyrag.server.config import ServerConfig
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
UNIT = re.findall(r"```ini\n(.*?)```", (ROOT / "docs/deployment.md").read_text(encoding="utf-8"), re.DOTALL)[0]


def check_command(arguments: list[str]) -> None:
    """Fail where a command line of pyrag names a command or an option that there is not."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    known = {option for parameter in commands[arguments[0]].params for option in parameter.opts}
    used = {one.partition("=")[0] for one in arguments if one.startswith("--")}
    assert used
    assert used <= known


def test_the_image_copies_files_that_are_sent() -> None:
    sent = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    copied = {name for line in re.findall(r"^COPY ((?!--).+)", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]}
    assert copied == sent
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    parts = {Path(part).parts[0] for part in (*wheel["packages"], *wheel["force-include"])}
    assert parts <= copied
    assert all((ROOT / name).exists() for name in copied)
    assert "readme" in (ROOT / "pyproject.toml").read_text()


def test_the_image_serves_as_a_user_and_is_checked() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert re.search(r"^USER (\d+):\d+$", last, re.MULTILINE)
    (served,) = re.findall(r"^CMD (\[.+\])$", last, re.MULTILINE)
    check_command(yaml.safe_load(served))
    path = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", last)
    assert path
    assert int(path[1]) == ServerConfig().port
    assert f"EXPOSE {path[1]}" in last


async def test_the_checked_path_is_one_of_the_server() -> None:
    service = QuestionService(make_settings({}), ServerConfig())
    paths = {getattr(route, "path", "") for route in create_app(service).routes}
    await service.aclose()
    assert "/healthz" in paths


def test_compose_runs_commands_that_exist_without_privileges() -> None:
    server = COMPOSE["services"]["pyrag"]
    check_command(server["command"])
    assert (server["cap_drop"], server["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert server["read_only"] is True
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert server["depends_on"].keys() <= COMPOSE["services"].keys()
    named = [volume for one in COMPOSE["services"].values() for volume in one["volumes"] if volume[0].isalpha()]
    assert {volume.partition(":")[0] for volume in named} == COMPOSE["volumes"].keys()


def test_the_unit_keeps_what_the_sandbox_needs() -> None:
    lines = dict(line.split("=", 1) for line in UNIT.splitlines() if "=" in line)
    program, *arguments = shlex.split(lines["ExecStart"])
    assert Path(program).name == "pyrag"
    check_command(arguments)
    assert "AF_UNIX" in lines["RestrictAddressFamilies"]
    assert lines["SystemCallFilter"] == "@system-service"
    assert lines["NoNewPrivileges"] == "yes"
