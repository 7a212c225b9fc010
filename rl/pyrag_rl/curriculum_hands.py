"""What a curriculum does things with: verl, vLLM's server, `pyrag bench` and the data builders, each as its command is.

Servers and benchmarks are processes of their own, so that a model's memory is free again when its turn is over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyrag.errors import ServiceError
from pyrag.evaluation.runs import SUMMARY
from pyrag_rl.config import TrainConfig
from pyrag_rl.curriculum import Curriculum, Hands, Questions

_COMMAND = [sys.executable, "-c", "from pyrag.cli import main; main()"]
_READY = 1800.0  # seconds that a server may take to load a model
_POLL, _PATIENCE = 2.0, 30.0  # seconds
_SETTING = {"answer": "llm", "plan": "plan_llm", "decompose": "decompose_llm", "rewrite": "rewrite_llm"}


def hands() -> Hands:
    return Hands(train=_train, serve=_serve, ask=_ask, build=_build)


def _train(config: TrainConfig) -> Path:
    from pyrag_rl.export import export
    from pyrag_rl.launch import train

    folder = train(config)
    made = export(folder.path)
    return made.adapter or folder.merged


@contextlib.contextmanager
def _serve(curriculum: Curriculum, adapters: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, str]]:
    """One server for each model, with the adapters that belong to it; its log is in the curriculum's folder."""
    models = list(dict.fromkeys([curriculum.model, *(model for model, _ in adapters.values())]))
    ports = {model: curriculum.serving.port + place for place, model in enumerate(models)}
    with contextlib.ExitStack() as stack:
        for model in models:
            own = {_name(path): path for of, path in adapters.values() if of == model and path}
            stack.enter_context(_server(curriculum, model, own, ports[model]))
        yield settings_of(curriculum.model, adapters, ports)


def settings_of(base: str, adapters: Mapping[str, tuple[str, str]], ports: Mapping[str, int]) -> dict[str, str]:
    """Each agent's engine among the servers; agents that nobody trained are the base model."""

    def engine(model: str, path: str) -> str:
        return f"openai:{_name(path) if path else model}@http://127.0.0.1:{ports[model]}/v1"

    settings = {"llm": engine(base, "")}
    return settings | {_SETTING[agent]: engine(*adapter) for agent, adapter in adapters.items()}


def _name(adapter: str) -> str:
    """What a server calls an adapter: its run's folder."""
    return Path(adapter).resolve().parent.name


@contextlib.contextmanager
def _server(curriculum: Curriculum, model: str, adapters: Mapping[str, str], port: int) -> Iterator[None]:
    serving = curriculum.serving
    command = [*_COMMAND, "serve-model", model, "--port", str(port), "--tensor-parallel", str(serving.tensor_parallel)]
    for name, path in adapters.items():
        command += ["--lora", f"{name}={path}"]
    env = {**os.environ, **({"CUDA_VISIBLE_DEVICES": serving.gpus} if serving.gpus else {})}
    log = Path(curriculum.out) / f"serving-{port}.log"
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603  our own command
            command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, start_new_session=True
        )
    try:
        _await(process, port, model, log)
        yield
    finally:
        _end(process)


def _await(process: subprocess.Popen[bytes], port: int, model: str, log: Path) -> None:
    until = time.monotonic() + _READY
    while process.poll() is None and time.monotonic() < until:
        with (
            contextlib.suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply,
        ):
            if reply.status == 200:
                return
        time.sleep(_POLL)
    raise ServiceError(f"vLLM could not serve {model} on port {port}: read {log}", service=model)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
            return


def _ask(questions: Questions, settings: Mapping[str, str], out: Path) -> float:
    """A run that is there goes on. Raises `ServiceError` where questions failed outside their method."""
    done = subprocess.run([*_COMMAND, *bench_line(questions, out)], env=_with(settings), check=False)  # noqa: S603
    if done.returncode:
        raise ServiceError(f"pyrag bench ended with code {done.returncode}: run the same command to go on with {out}")
    return exact_match(out)


def bench_line(questions: Questions, out: Path) -> list[str]:
    line = ["bench", "--data", questions.data, "--sets", ",".join(questions.sets), "--method", questions.method]
    line += ["--out", str(out), "--concurrency", str(questions.concurrency)]
    options = {"--split": questions.split, "--limit": questions.limit, "--retriever": questions.retriever}
    return line + [part for name, value in options.items() if value for part in (name, str(value))]


def exact_match(out: Path) -> float:
    """The average over the sets of a run that `pyrag bench` finished, from 0 to 1."""
    import msgspec

    summary = msgspec.json.decode((out / SUMMARY).read_bytes())
    return float(summary["averages"][0]["em"])


def _with(settings: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **{f"PYRAG_{name.upper()}": value for name, value in settings.items()}}


def _build(task: str, run: Path, out: Path) -> None:
    from pyrag_rl.data.build import Request, build

    build(Request(tasks=[task], runs=[run], out=out, leave_out=True))
