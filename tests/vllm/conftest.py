"""A real vLLM server with a tiny random model and an adapter, started as a user would, and a proxy that records."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.cli.conftest import COMMAND, Run, environment, pyrag
from tests.llm.local_models import TinyModel, tiny

__all__ = ["Run", "environment", "pyrag", "tiny"]

KEY = "sk-planted-0123456789abcdef"
PATIENCE = 600.0  # seconds that a client waits for a reply, on a busy machine
ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0-1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
# A random model does not end by itself: a reply gets a quarter of the window. A busy machine takes its time over it.
SHORT_REPLIES = {"PYRAG_CONTEXT_TOKENS": "512", "PYRAG_CALL_TIMEOUT": "900", "PYRAG_DEADLINE": "1800"}
_PATIENCE = 1200.0  # seconds; a busy machine takes long to import PyTorch


@pytest.fixture(scope="session", autouse=True)
def _vllm_on_cpu() -> Iterator[None]:
    pytest.importorskip("vllm")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ON_CPU.items():
            patch.setenv(name, value)
        yield


@dataclass(slots=True)
class Served:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def counted(self, metric: str, **labels: str) -> float:
        """The sum of a metric that the server publishes."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        found = [line for line in lines if line.startswith(metric + "{") and all(one in line for one in wanted)]
        return sum(float(line.rpartition(" ")[2]) for line in found)


@pytest.fixture(scope="session")
def served(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`pyrag serve-model` with a key: the model's name is tiny, its adapter's planner."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("served") / "log"
    line = [*COMMAND, "serve-model", str(tiny.folder), "--name", "tiny", "--lora", f"planner={tiny.adapter}"]
    line += ["--port", str(port), "--dtype", "float32", "--", "--enforce-eager"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, stdout=output, stderr=output, env=environment(PYRAG_API_KEY=KEY, **ON_CPU), start_new_session=True
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield Served(f"http://127.0.0.1:{port}/v1", process, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`pyrag ask` with short replies, and time enough for an engine that is loaded on a busy machine."""
    return subprocess.run(
        [*COMMAND, "ask", "Who is Jed Hoyer?", *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(**ON_CPU, **SHORT_REPLIES, **env),
        timeout=2400,
    )


async def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Looks from a thread, so that what is waited for can go on."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 (another process is looked at)
            await asyncio.sleep(0.05)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"the server did not start in {_PATIENCE:g} s: {log.read_text()[-2000:]}")


@dataclass
class Recorder:
    """A proxy before the server; `bodies` holds the requests as they were sent, `replies` what the server said."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
async def recorder(served: Served) -> AsyncIterator[Recorder]:
    recorder = Recorder()

    async def forward(request: web.Request) -> web.Response:
        sent = await request.read()
        recorder.bodies.append(json.loads(sent))
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type")}
        address = served.url + request.path.removeprefix("/v1")
        async with aiohttp.ClientSession() as session, session.post(address, data=sent, headers=headers) as reply:
            content = await reply.read()
            if reply.content_type == "application/json":
                recorder.replies.append(json.loads(content))
            return web.Response(status=reply.status, body=content, content_type=reply.content_type)

    app = web.Application()
    app.router.add_post("/v1/{path:.*}", forward)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    recorder.url = f"http://{host}:{port}/v1"
    yield recorder
    await runner.cleanup()
