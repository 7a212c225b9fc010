"""Benchmark of `pyrag serve` under load: `make bench-serve`, with SECONDS=60 for a full minute.

There are three phases, with the embedded engine and the bundled corpus:

    library     questions by `PyRAG.aask` in a separate process, as many at once as the server answers
    quiet       the same questions by 64 clients over HTTP, whose rate is compared with the library's
    killed      the same questions as streams, while a sandbox worker is killed every second (every fifth second, the
                zygote that forks workers is killed instead)

Each request must end in an answer or a clear error. The figures are rates, the time from an event to its receipt,
the memory of the server at the start, in the middle and at the end, the CPU time of an answer including the sandbox,
and the CPU time of the clients. Clients share the cores with the server: `ratio` includes their time, and `cpu_ratio`
does not. There is no model server, because waiting for it would hide the cost of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from pyrag import PyRAG
from pyrag.cli.main import guarded
from pyrag.evaluation.reports.writer import Table

PATIENCE = 120.0  # seconds after which a request counts as hanging; more than the server's own deadline
WARMUP = 24  # number of questions before memory is measured
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LINES = ("program_started", "step_started")  # events that show a running program


@dataclass(slots=True)
class PhaseOutcomes:
    """Outcomes of the requests of a phase over HTTP."""

    ended: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    first_lags: list[float] = field(default_factory=list)  # lags of the first event after a program's start
    lags: list[float] = field(default_factory=list)
    elapsed: float = 0.0

    @property
    def rate(self) -> float:
        return self.ended["answer"] / self.elapsed


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of all phases. Rates are answers per second, memory is in MiB, lags and CPU times are in milliseconds."""

    askers: int
    concurrency: int
    library: float
    quiet: float
    killed: float
    ratio: float
    library_cpu: float
    server_cpu: float
    client_cpu: float
    cpu_ratio: float
    ended: dict[str, int]
    workers_killed: int
    zygotes_killed: int
    first_event_p50: float
    first_event_p95: float
    event_p95: float
    wait_p50: float
    memory: tuple[float, float, float]


def main() -> None:
    """Run all phases and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--askers", type=int, default=64)
    parser.add_argument("--concurrency", type=int, default=8, help="questions answered at once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--library", action="store_true", help="measure the library alone (the command runs itself so)")
    options = parser.parse_args()
    if options.library:
        print(*asyncio.run(library_rate(options.seconds, options.concurrency)))
        return
    report = asyncio.run(measure(options.seconds, options.askers, options.concurrency))
    print(json.dumps(asdict(report)) if options.json else _table(report))


def questions() -> Iterator[str]:
    """Yield the questions of the demo again and again."""
    lines = (files("pyrag") / "data" / "demo.jsonl").read_text(encoding="utf-8").splitlines()
    return itertools.cycle([json.loads(line)["question"] for line in lines])


async def library_rate(seconds: float, concurrency: int) -> tuple[float, float]:
    """Return the library's answers per second, and its CPU milliseconds per answer.

    Args:
        seconds: Duration of the measurement.
        concurrency: Number of questions at once.
    """
    stream = questions()
    async with PyRAG(concurrency=concurrency) as rag:
        for _ in range(WARMUP):
            await rag.aask(next(stream))
        began, spent, count = time.monotonic(), _cpu(os.getpid()), 0

        async def ask() -> None:
            nonlocal count
            while time.monotonic() - began < seconds:
                await rag.aask(next(stream))
                count += 1

        await asyncio.gather(*(ask() for _ in range(concurrency)))
        return count / (time.monotonic() - began), 1000 * (_cpu(os.getpid()) - spent) / count


async def measure(seconds: float, askers: int, concurrency: int) -> Report:
    """Return the figures of all phases.

    Args:
        seconds: Duration of each phase.
        askers: Number of clients, each of which asks one question after another.
        concurrency: Number of questions that the server answers at once.
    """
    library, library_cpu = await _library(seconds, concurrency)
    async with _server(concurrency, askers) as (url, pid), aiohttp.ClientSession(url) as session:
        await _load(session, 1.0, min(askers, WARMUP), stream=False)
        start, spent, asking = _memory(pid), _cpu(pid), time.process_time()
        quiet = await _load(session, seconds, askers, stream=False)
        answers = max(1, quiet.ended["answer"])
        server_cpu, client_cpu = 1000 * (_cpu(pid) - spent) / answers, 1000 * (time.process_time() - asking) / answers
        middle = _memory(pid)
        kills: Counter[str] = Counter()
        killing = asyncio.create_task(_kill_sandbox(pid, kills))
        killed = await _load(session, seconds, askers, stream=True)
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        end = _memory(pid)
    return Report(
        askers, concurrency, library, quiet.rate, killed.rate, quiet.rate / library, library_cpu,
        server_cpu, client_cpu, library_cpu / server_cpu, dict(quiet.ended + killed.ended),
        kills["worker"], kills["zygote"], _quantile(killed.first_lags, 0.5), _quantile(killed.first_lags, 0.95),
        _quantile(killed.lags, 0.95), median(quiet.seconds) if quiet.seconds else 0.0, (start, middle, end),
    )  # fmt: skip


async def _library(seconds: float, concurrency: int) -> tuple[float, float]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.serve_load", "--library", "--seconds", str(seconds),
        "--concurrency", str(concurrency), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    rate, cpu = map(float, output.split())
    return rate, cpu


@asynccontextmanager
async def _server(concurrency: int, askers: int) -> AsyncIterator[tuple[str, int]]:
    """Run `pyrag serve` with a queue that has a place for each client."""
    with TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pyrag", "serve", "--port", "0", "--concurrency", str(concurrency),
            "--max-waiting", str(askers), "--traces", f"{folder}/traces.sqlite", stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            yield line.split(" at ")[1].split()[0], process.pid
        finally:
            process.terminate()
            await process.wait()


async def _load(session: aiohttp.ClientSession, seconds: float, askers: int, *, stream: bool) -> PhaseOutcomes:
    outcomes, texts, began = PhaseOutcomes(), questions(), time.monotonic()

    async def asker() -> None:
        while time.monotonic() - began < seconds:
            asked = time.monotonic()
            try:
                async with asyncio.timeout(PATIENCE):
                    outcomes.ended[await _ask(session, next(texts), outcomes, stream=stream)] += 1
            except TimeoutError:
                outcomes.ended["hang"] += 1
            except aiohttp.ClientError as error:
                outcomes.ended[f"broken: {type(error).__name__}"] += 1
            outcomes.seconds.append(time.monotonic() - asked)

    await asyncio.gather(*(asker() for _ in range(askers)))
    outcomes.elapsed = time.monotonic() - began
    return outcomes


async def _ask(session: aiohttp.ClientSession, question: str, outcomes: PhaseOutcomes, *, stream: bool) -> str:
    """Return how a request ended: `answer`, or the kind of its error."""
    async with session.post("/v1/ask", json={"question": question, "stream": stream}) as reply:
        if reply.status != 200:
            return f"{reply.status} {(await reply.json())['error']['code']}"
        if not stream:
            return _outcome_of(await reply.json())
        last, started = "", 0.0
        running = False
        async for line in reply.content:
            now = time.time()
            if line.startswith(b"event: "):
                last = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                value = json.loads(line[6:])
                if last == "question_started":
                    started = datetime.fromisoformat(value["started_at"]).timestamp()
                elif "at" in value and started:
                    lag = 1000 * (now - started - value["at"])
                    outcomes.lags.append(lag)
                    if last in _LINES and not running:
                        outcomes.first_lags.append(lag)
                    running = running or last in _LINES
        return _outcome_of(value) if last == "reply" else last if last != "error" else f"error {value['error']['code']}"


def _outcome_of(reply: dict[str, Any]) -> str:
    return "answer" if reply["error"] is None else f"trace error {reply['error']['kind']}"


async def _kill_sandbox(server: int, kills: Counter[str]) -> None:
    """Kill a worker of the sandbox every second, and every fifth time a zygote instead, until cancelled.

    Args:
        server: Process id of the server.
        kills: Numbers of killed processes, by `worker` and `zygote`.
    """
    for second in itertools.count(1):
        await asyncio.sleep(1)
        zygotes = _children(server)
        workers = [worker for zygote in zygotes for worker in _children(zygote)]
        kind, victims = ("zygote", zygotes) if second % 5 == 0 else ("worker", workers)
        if victims:
            with suppress(ProcessLookupError):
                os.kill(random.choice(victims), signal.SIGKILL)  # noqa: S311
                kills[kind] += 1


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return children


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its children, including children that have exited."""
    own, below = 0.0, _children(pid)
    for process in (pid, *below):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        own += sum(map(int, fields[11:15]))
    return own / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0


def _table(report: Report) -> str:
    rows = [[name.replace("_", " "), _shown(value)] for name, value in asdict(report).items()]
    return str(Table(["figure", "value"], rows))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    if isinstance(value, tuple | list):
        return " → ".join(map(_shown, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    guarded(main)
