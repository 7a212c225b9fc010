"""Benchmark with a small language model: each method uses it, and the rates of faulty replies are printed.

    python -m benchmarks.real_model --model FOLDER [--engines vllm transformers] [--methods pyrag opera …]
    python -m benchmarks.real_model --model FOLDER --adapter RUN/adapter --set prompts=small --set joint=true

vLLM serves the model (`pyrag serve-model`); after that, `transformers:` loads it in this process. The model may be
poor: every question should still end in a trace. The tables show how many replies had the required form, were requested
again, were cut off, or were replaced by a fallback, with and without structured output and streaming. `make test-model`
uses the untrained SmolLM2-135M-Instruct (`tools/base_model.py`); `--adapter` uses a trained adapter, with the settings
of its training. The exit status is 1 if a question ended without a trace or after its deadline.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyrag._io.loopback import is_ready
from pyrag.cli.main import guarded
from pyrag.errors import ServiceError
from pyrag.evaluation.metrics import score_text
from pyrag.evaluation.runs.provenance import commit
from pyrag.llm.protocol import Message, Reply
from pyrag.llm.wrappers import Meter
from pyrag.methods.registry import method_names
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines, open_engines
from pyrag.settings import make_settings
from pyrag.trace.model import UNPLANNED, Trace

SETS = ("demo.jsonl", "mini/2wikimultihopqa.jsonl")
# Idle threads must sleep: busy ones would keep the cores from a second server.
ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1", "OMP_WAIT_POLICY": "passive",
    "HF_HUB_OFFLINE": "1",
}  # fmt: skip
START_SECONDS = 400.0  # vLLM's start on a busy machine
FORMS = ((True, True), (False, True), (True, False))  # structured output, streaming
TRAINED = "trained"  # name of the adapter
GRACE = 5.0  # seconds that a question may take beyond its deadline


@dataclass
class ReplyCounter(Meter):
    """Meter that counts the replies of the model."""

    replies: int = 0
    first: int = 0
    cut_off: int = 0
    completion_tokens: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def end(self, messages: Sequence[Message], reply: Reply) -> None:
        """Count a reply. It is a repetition if the prompt contains an earlier reply of the model."""
        super().end(messages, reply)
        self.replies += 1
        self.first += not any(message.role == "assistant" for message in messages[:-1])
        self.cut_off += reply.finish_reason == "length"
        self.completion_tokens += reply.completion_tokens


@dataclass
class Rates:
    """Sums over the questions of a method."""

    method: str
    counter: ReplyCounter
    traces: list[Trace] = field(default_factory=list)
    right: float = 0.0
    wall: float = 0.0
    late: int = 0

    def row(self) -> list[str]:
        """Return the table's cells in the order of `HEAD`."""
        counter, asked = self.counter, len(self.traces)
        calls = [exchange for trace in self.traces for exchange in trace.exchanges if exchange.role != "retrieve"]
        in_form = sum((call.reply["value"].get("usage") or {}).get("model_calls", 1) == 1 for call in calls)
        fallbacks = sum(program.origin == UNPLANNED for trace in self.traces for program in trace.programs)
        ended = [trace.error.kind for trace in self.traces if trace.error]
        again = counter.replies - counter.first
        return [
            self.method,
            f"{asked}",
            f"{counter.replies / asked:.1f}",
            *(share(in_form, counter.first), share(again, counter.replies), share(counter.cut_off, counter.replies)),
            f"{fallbacks / asked:.2f}",
            f"{sum(not trace.answer.known for trace in self.traces)}",
            f"{ended.count('deadline')}",
            f"{len(ended) - ended.count('deadline')}",
            f"{100 * self.right / asked:.0f}",
            f"{counter.completion_tokens / self.wall:.0f}",
            f"{max(trace.usage.seconds for trace in self.traces):.1f}",
        ]


HEAD = [
    *("method", "questions", "replies each", "in form", "asked again", "cut off", "fallbacks each", "unknown"),
    *("at deadline", "other errors", "EM", "tokens/s", "slowest, s"),
]


def share(part: int, whole: int) -> str:
    """Return a percentage; a dash if there is nothing to count."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def questions(count: int) -> list[dict[str, Any]]:
    """Return `count` questions of the bundled corpus, with their answers."""
    folder = Path(str(files("pyrag"))) / "data"
    lines = [line for name in SETS for line in (folder / name).read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines[:count]]


async def measure(method: str, spec: str, asked: list[dict[str, Any]], options: argparse.Namespace) -> Rates:
    """Ask all questions with one method, `options.at_once` at a time."""
    counter = ReplyCounter()
    values = {"llm": spec, "method": method, "deadline": options.deadline, "call_timeout": options.deadline}
    values |= {"structured": options.structured, "stream": options.stream}
    values |= {"request": {"max_tokens": options.tokens}, **dict(options.settings)}
    rates = Rates(method, counter)
    engines = open_engines(make_settings(values), meter=counter)
    try:
        await engines.start()
        started = time.perf_counter()
        await _ask_all(engines, values, asked, options.at_once, rates)
        rates.wall = time.perf_counter() - started
    finally:
        await engines.aclose()
    return rates


async def _ask_all(
    engines: Engines, values: dict[str, Any], asked: list[dict[str, Any]], at_once: int, to: Rates
) -> None:
    slots, settings = asyncio.Semaphore(at_once), make_settings(values)

    async def ask(item: dict[str, Any]) -> None:
        async with slots:
            trace = await answer_question(item["question"], engines, settings, keep=True)
        to.traces.append(trace)
        to.right += score_text(trace.answer.text if trace.answer.known else "", item["answers"])[0]
        to.late += trace.usage.seconds > settings.deadline + GRACE if settings.deadline else 0

    async with asyncio.TaskGroup() as group:
        for item in asked:
            group.create_task(ask(item))


@contextmanager
def served(
    model: Path, log: Path, loras: Mapping[str, Path] | None = None, *, port: int = 0, gpu: bool = False
) -> Iterator[str]:
    """Serve a model folder by `pyrag serve-model` and yield its engine.

    Args:
        model: Folder of the model.
        log: File for the server's output.
        loras: Folders of LoRA adapters, by name.
        port: Port of the server; 0 means a free one.
        gpu: Whether to serve on a GPU, with 0.4 of its memory.

    Raises:
        ServiceError: The server ended or did not start in time. The message names the log.
    """
    port = port or _free_port()
    line = [sys.executable, "-m", "pyrag", "serve-model", str(model), "--name", "small", "--port", str(port)]
    line += [part for name, folder in (loras or {}).items() for part in ("--lora", f"{name}={folder}")]
    line += ["--gpu-memory", "0.4"]
    line += [] if gpu else ["--", "--enforce-eager", "--dtype", "float32"]  # without AMX, bf16 is slower
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, stdout=output, stderr=output, env={**os.environ, **({} if gpu else ON_CPU)}, start_new_session=True
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"openai:small@http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if is_ready(url):
            return
        time.sleep(1)
    raise ServiceError(f"vLLM did not start: see {log}", service="vLLM")


def show(title: str, rows: list[list[str]]) -> None:
    """Print one Markdown table."""
    print(f"\n## {title}\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def measure_all(name: str, spec: str, asked: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Print the tables of an engine, one for each of `FORMS`. Return the number of failed or late questions."""
    bad = 0
    for options.structured, options.stream in FORMS:
        rates = [asyncio.run(measure(method, spec, asked, options)) for method in options.methods]
        forms = f"structured output {_on(options.structured)}, streaming {_on(options.stream)}"
        show(f"{name}, {forms}", [rate.row() for rate in rates])
        bad += sum(rate.late + (len(rate.traces) < len(asked)) for rate in rates)
    return bad


def _on(value: bool) -> str:
    return "on" if value else "off"


def setting(text: str) -> tuple[str, str]:
    """Parse a setting of the command line.

    Args:
        text: KEY=VALUE.

    Raises:
        ValueError: The text has no equals sign.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(text)
    return key, value


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a Hugging Face folder")
    parser.add_argument("--engines", nargs="+", default=["vllm", "transformers"], choices=["vllm", "transformers"])
    parser.add_argument("--methods", nargs="+", default=list(method_names()))
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--deadline", type=float, default=20.0, help="seconds a question")
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of a reply")
    parser.add_argument("--adapter", type=Path, help="a PEFT adapter to ask in place of the model")
    parser.add_argument(
        "--set", dest="settings", type=setting, action="append", default=[], help="setting of pyrag as KEY=VALUE"
    )
    parser.add_argument("--log", type=Path, default=Path("runs/real-model/vllm.log"))
    options = parser.parse_args()
    asked, bad = questions(options.questions), 0
    print(f"# {options.model.name}, {len(asked)} questions of the bundled corpus, commit {commit()}")
    print(f"{options.at_once} at once, deadline {options.deadline:g} s, replies of at most {options.tokens} tokens")
    if "vllm" in options.engines and shutil.which("vllm", path=str(Path(sys.executable).parent)):
        loras = {TRAINED: options.adapter} if options.adapter else {}
        with served(options.model, options.log, loras) as spec:
            bad += measure_all("vLLM", spec.replace(":small@", f":{TRAINED}@") if loras else spec, asked, options)
    if "transformers" in options.engines:
        adapter = f",adapter={TRAINED}={options.adapter}" if options.adapter else ""
        bad += measure_all("transformers", f"transformers:{options.model}{adapter}", asked, options)
    print(f"\nquestions without a trace, or later than their deadline by {GRACE:g} s: {bad}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    guarded(main)
