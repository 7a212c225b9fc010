"""Adapter of the shared harness (`../shared/harness`), which runs pyrag with scripted model and retriever servers.

    python ../shared/harness/compare.py speed --adapter "python benchmarks/harness_adapter.py"

The harness's `adapters/common.py` describes the protocol: JSON lines on stdin are questions, of which the first is a
warm-up; JSON lines on stdout are results, followed by the CPU seconds. `--deadline` is the time limit per question in
seconds, and `--profile` is a profile of pyrag.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyrag import PyRAG, PyRAGError
from pyrag._io.processes import settle_collector
from pyrag.cli.main import guarded


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its running children, including the sandbox.

    Children are read while they run: waiting for them to exit would add their start-up time to the questions' time.
    """
    own = resource.getrusage(resource.RUSAGE_SELF)
    ticks = os.sysconf("SC_CLK_TCK")
    total = own.ru_utime + own.ru_stime
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread or process has just ended
            for pid in (task / "children").read_text().split():
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / ticks  # user and system time, with ended children
    return total


def own_output() -> Callable[[dict[str, Any]], None]:
    """Return a function that writes result lines, and discard all other output to stdout."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def send(line: dict[str, Any]) -> None:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")
        out.flush()

    return send


async def ask(rag: PyRAG, item: dict[str, str]) -> dict[str, Any]:
    started = time.perf_counter()
    answer, error = None, None
    try:
        trace = await rag.aask(item["question"])
        answer, error = trace.answer.text, trace.error and f"{trace.error.kind}: {trace.error.message}"
    except PyRAGError as refused:
        error = f"{refused.kind}: {refused}"
    wall = time.perf_counter() - started
    return {"id": item["id"], "answer": answer, "error": error, "wall_s": wall}


async def serve(concurrency: int, deadline: float, profile: str) -> None:
    send = own_output()
    llm = f"openai:fake@{os.environ['BENCH_LLM_URL']}"
    async with PyRAG(llm, retriever=os.environ["BENCH_RETRIEVER_URL"], deadline=deadline, profile=profile) as rag:
        slots = asyncio.Semaphore(concurrency)

        async def answer_one(item: dict[str, str]) -> None:
            async with slots:
                send(await ask(rag, item))

        await answer_one(json.loads(sys.stdin.readline()))
        settle_collector()  # as `pyrag serve` and `pyrag bench` do
        items = [json.loads(line) for line in sys.stdin]
        wall, cpu = time.perf_counter(), cpu_seconds()
        await asyncio.gather(*map(answer_one, items))
        send({"done": {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=30.0)
    parser.add_argument("--profile", default="paper")
    options = parser.parse_args()
    asyncio.run(serve(options.concurrency, options.deadline, options.profile))


if __name__ == "__main__":
    guarded(main)
