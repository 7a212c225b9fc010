"""A model server, in a process of its own, that is killed and comes back in the middle of 200 questions."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag.trace.model import Trace

QUESTIONS = [f"Who is Jed Hoyer, number {n}?" for n in range(200)]
HALF, AT_ONCE = 100, 32


class MortalServer:
    def __init__(self, folder: Path) -> None:
        self.log = folder / "requests.jsonl"
        self.log.touch()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def engine(self) -> str:
        return f"openai:tiny@http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[tuple[float, str, str]]:
        return [tuple(json.loads(line)) for line in self.log.read_text("utf-8").splitlines()]

    async def start(self, *, retry_after: float = 0.0) -> None:
        script = Path(__file__).with_name("mortal_server.py")
        command = [sys.executable, str(script), str(self.port), str(self.log), "0.05", str(retry_after)]
        self.process = subprocess.Popen(command)  # noqa: ASYNC220 (starting is quick, and it must be killed at once)
        async with asyncio.timeout(120):
            while not self._listens():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MortalServer]:
    server = MortalServer(tmp_path)
    yield server
    server.kill()


async def ask_all(server: MortalServer, *, down: float, retry_after: float = 0.0) -> list[Trace]:
    """Asks half of the questions, kills the server in the middle of them, and asks the other half when it is back."""
    slots = asyncio.Semaphore(AT_ONCE)
    await server.start()

    async def one(question: str) -> Trace:
        async with slots:
            return await rag.aask(question)

    async with asyncio.timeout(100), PyRAG(server.engine) as rag, asyncio.TaskGroup() as group:
        asked = [group.create_task(one(question)) for question in QUESTIONS[:HALF]]
        while len(server.requests()) < 2 * HALF:  # noqa: ASYNC110 (they come in another process)
            await asyncio.sleep(0.02)
        server.kill()
        await asyncio.sleep(down)
        await server.start(retry_after=retry_after)
        asked += [group.create_task(one(question)) for question in QUESTIONS[HALF:]]
    return [task.result() for task in asked]


def check(traces: list[Trace], server: MortalServer) -> None:
    """Every question has its answer or an error that names the server, and nothing was asked after it was answered."""
    assert [trace.question for trace in traces] == QUESTIONS
    for number, trace in enumerate(traces):
        if trace.error:
            assert (trace.error.kind, trace.error.exit_code) == ("service", 3)
            assert f"model server http://127.0.0.1:{server.port}" in trace.error.message
        else:
            assert trace.answer.text == f"an executive {number}"
        assert not any(program.error for program in trace.programs)  # no fault became a repair
    answered = Counter(asked for _, what, asked in server.requests() if what == "answered")
    assert max(answered.values()) == 1


async def test_every_question_ends_in_an_answer_or_a_named_error(server: MortalServer) -> None:
    traces = await ask_all(server, down=1.0)
    check(traces, server)
    assert all(trace.error is None for trace in traces[HALF:])
    assert any(trace.error is None for trace in traces[:HALF])


@pytest.mark.slow
async def test_no_herd_while_a_restarted_server_asks_for_patience(server: MortalServer) -> None:
    traces = await ask_all(server, down=0.0, retry_after=1.0)
    check(traces, server)
    assert all(trace.error is None for trace in traces[HALF:])
    refused = Counter(asked for _, what, asked in server.requests() if what == "refused")
    assert refused
    assert max(refused.values()) == 1  # whoever is told to wait waits until the server is ready
