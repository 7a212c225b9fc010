"""Flow policy of the command line, HTTP and MCP."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from pyrag.errors import ConfigError
from tests.cli.conftest import COMMAND, environment

TOOL = "tests.episode.flow.my_orders:order"
DEPENDENT = 'docs = retrieve("The Seventh Seal")\norder(docs[0].id)\nfinal_answer = "done"\n'
PLAIN = 'docs = retrieve("The Seventh Seal")\nif docs_wanted:\n    order("pen")\nfinal_answer = "done"\n'
KEY, TRUSTED = "k-strict-0123456789abcdef", "k-trusted-0123456789abcdef"


class Orders:
    """File of orders."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "orders"

    @property
    def lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").split() if self.file.exists() else []


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    orders = Orders(tmp_path)
    monkeypatch.setenv("ORDERS", str(orders.file))
    (tmp_path / "dependent.py").write_text(DEPENDENT, encoding="utf-8")
    return orders


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "run", "dependent.py", "--tools", TOOL, *arguments]
    return subprocess.run(command, cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=120)


def run_at_a_terminal(folder: Path, typed: str, *arguments: str) -> tuple[str, int]:
    """What a terminal shows, and the exit code; one line is typed at the question."""
    parent, child = pty.openpty()
    command = [*COMMAND, "run", "dependent.py", "--tools", TOOL, *arguments]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, cwd=folder, env=environment())
    os.close(child)
    shown = b""
    try:
        while chunk := os.read(parent, 65536):
            shown += chunk
            if shown.rstrip().endswith(b"[y/N]"):
                os.write(parent, typed.encode() + b"\n")
    except OSError:
        pass  # the process has ended
    os.close(parent)
    return shown.decode(), process.wait(timeout=60)


def test_commands_refuse_without_a_terminal(orders: Orders) -> None:
    done = run(orders.file.parent, "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["kind"], error["line"], orders.lines) == (1, "flow", 2, [])
    done = run(orders.file.parent, PYRAG_FLOW="confirm")
    assert "dependent.py, the call was refused: order(" in done.stderr
    assert "nobody can confirm it here" in done.stderr


def test_commands_allow_by_option(orders: Orders) -> None:
    done = run(orders.file.parent, "--flow", "allow")
    assert (done.returncode, len(orders.lines)) == (0, 1), done.stderr


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_terminals_are_asked(orders: Orders, typed: str, code: int) -> None:
    shown, exit_code = run_at_a_terminal(orders.file.parent, typed, "--flow", "confirm")
    assert (exit_code, len(orders.lines)) == (code, 1 - code), shown
    assert "in line 2: its argument 1 depends on retrieved text" in shown
    assert "Make this call? [y/N]" in shown


def test_strict_asks_nobody(orders: Orders) -> None:
    shown, code = run_at_a_terminal(orders.file.parent, "y", "--flow", "strict")
    assert (code, orders.lines, "[y/N]" in shown) == (1, [], False)


async def test_keys_are_strict_unless_allowed(orders: Orders, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    from pyrag.server.config import ServerConfig, read_keys
    from tests.server.test_serve import running

    file = tmp_path / "keys"
    file.write_text(f"{KEY} default\n{TRUSTED} default +effects\n", encoding="utf-8")
    config = ServerConfig(keys=read_keys(file, {}))
    async with running(config, tools=(TOOL,)) as client:
        status, reply = await client.post("/v1/programs", {"source": DEPENDENT}, **{"X-API-Key": KEY})
        assert (reply["error"]["kind"], reply["error"]["line"], orders.lines) == ("flow", 2, []), (status, reply)
        assert "in line 2: its argument 1 depends on retrieved text" in reply["error"]["message"]
        status, reply = await client.post(
            "/v1/programs", {"source": PLAIN, "inputs": {"docs_wanted": True}}, **{"X-API-Key": KEY}
        )
        assert (status, orders.lines) == (200, ["pen"]), reply
        status, reply = await client.post("/v1/programs", {"source": DEPENDENT}, **{"X-API-Key": TRUSTED})
        assert (status, len(orders.lines)) == (200, 2), reply


def test_key_lines_with_unknown_rights(tmp_path: Path) -> None:
    from pyrag.server.config import read_keys

    file = tmp_path / "keys"
    file.write_text(f'{KEY} notes +write +effects\n{TRUSTED} notes +effects where team = "ops"', encoding="utf-8")
    rights = [(access.writes, access.effects, access.where) for access in read_keys(file, {}).digests.values()]
    assert rights == [(True, True, ""), (False, True, 'team = "ops"')]
    file.write_text(f"{KEY} notes +everything", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\+everything"):
        read_keys(file, {})


async def test_assistants_that_have_read_passages_may_not_act(orders: Orders) -> None:
    pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
    from pyrag.server.config import Access, ServerConfig
    from pyrag.server.errors import ApiError
    from pyrag.server.mcp.schemas import ProgramArguments, SearchArguments
    from pyrag.server.mcp.tools import Tools
    from pyrag.server.service import QuestionService
    from pyrag.settings import make_settings

    async def report(number: int, line: str) -> None:
        pass

    service = QuestionService(make_settings({"tools": (TOOL,)}), ServerConfig())
    await service.start()
    try:
        tools, program = Tools(service), ProgramArguments(source='order("pen")\nfinal_answer = 1')
        await tools.run_program(program, Access(), report)
        assert orders.lines == ["pen"]
        await tools.search(SearchArguments(query="The Seventh Seal"), Access())
        with pytest.raises(ApiError, match="an assistant that has read passages") as refused:
            await tools.run_program(program, Access(), report)
        assert refused.value.code == "flow"
        await tools.run_program(program, Access(effects=True), report)
        await tools.run_program(program, Access(owner="another"), report)
        assert orders.lines == ["pen"] * 3
    finally:
        await service.aclose()
