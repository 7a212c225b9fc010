"""Backend of a curriculum: verl, vLLM's server, `pyrag bench` and the data builders, run like their commands.

Servers and benchmarks are separate processes, so that a model's memory is freed after its turn.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyrag._io.loopback import is_free, is_ready
from pyrag._io.processes import die_with_parent, end
from pyrag.errors import BadOutputError, BudgetExceededError, ConfigError, ProgramFailedError, ServiceError
from pyrag.evaluation.runs.folder import SUMMARY
from pyrag.settings import make_settings
from pyrag_rl.config import TrainConfig
from pyrag_rl.curriculum.stages import Adapters, Curriculum, CurriculumBackend, Questions, Serving
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl.launch import Console

_COMMAND = [sys.executable, "-c", "from pyrag.cli.main import main; main()"]
_READY = 1800.0  # seconds within which a server must load its model
FREE_SECONDS = 60.0  # seconds within which the port of a killed curriculum's server must become free
_POLL, _PATIENCE = 2.0, 30.0  # seconds
_SETTING = {"answer": "answer_llm", "plan": "plan_llm", "decompose": "decompose_llm", "rewrite": "rewrite_llm"}
_STDERR = 2
_SOME_FAILED = (1, 3)  # exit codes of `pyrag bench`
_OF_AGENTS = {BudgetExceededError.kind, BadOutputError.kind, ProgramFailedError.kind}  # failures caused by agents


def real_backend(console: Console) -> CurriculumBackend:
    train = partial(_train, console=console)
    return CurriculumBackend(
        check=_check, train=train, serve=_serve, ask=_ask, build=_build, apart=_check_apart, merge=_merge
    )


def _check(config: TrainConfig) -> None:
    from pyrag_rl.verl import preflight

    preflight.check_setup(config)
    if config.data:
        preflight.check_prescored(config)
        preflight.check_data(config)


def _train(config: TrainConfig, *, console: Console) -> Path:
    from pyrag_rl.report import write_report
    from pyrag_rl.start import start
    from pyrag_rl.verl.export import export

    start(config, console=console)
    folder = RunFolder(Path(config.out).resolve())
    write_report(folder.path)
    export(folder.path)
    return folder.adapter if config.lora_rank else folder.merged


def _check_apart(config: TrainConfig, questions: Questions) -> None:
    """Raise `ConfigError` if the training rows contain questions of the gate."""
    from pyrag.evaluation.datasets.suite import open_set
    from pyrag_rl.data.held_out import held_out, learnt_questions

    gate = held_out(open_set(name, Path(questions.data), split=questions.split).path for name in questions.sets)
    for source, id_, question in learnt_questions(Path(config.data)):
        if (path := gate.holding(source, id_, question)) is not None:
            raise ConfigError(
                f"{config.data} holds the question {question[:80]!r}, on which the curriculum measures ({path}): draw "
                "the gate (pyrag train gate) before the rows are built, and build them again"
            )


def _merge(model: str, adapter: str, out: Path) -> None:
    from pyrag_rl.verl.export import merge_adapter

    partial_out = out.with_name(f".{out.name}")
    merge_adapter(model, Path(adapter), partial_out)
    partial_out.rename(out)


@contextlib.contextmanager
def _serve(curriculum: Curriculum, adapters: Adapters) -> Iterator[dict[str, str]]:
    """Serve each model with its adapters, logging to the curriculum's folder. Yield settings that use the servers."""
    # If every agent has another model, the curriculum's own model is not needed.
    named = [model for model, _ in adapters.values()]
    base = curriculum.model if not curriculum.shared or not named else named[0]
    models = list(dict.fromkeys([base, *named]))
    ports = {model: curriculum.serving.port + place for place, model in enumerate(models)}
    with contextlib.ExitStack() as stack:
        for model in models:
            own = {_name(path): path for of, path in adapters.values() if of == model and path}
            line = serving_line(curriculum.serving, model, own, ports[model], len(models))
            stack.enter_context(_server(curriculum, model, line, ports[model]))
        yield settings_of(base, adapters, ports)


def settings_of(base: str, adapters: Adapters, ports: Mapping[str, int]) -> dict[str, str]:
    """Return settings that send each agent to its server. Agents without an adapter use the base model.

    Args:
        base: Model of the curriculum.
        adapters: Model and adapter by agent; an empty adapter means the model itself.
        ports: Port of each model's server.
    """

    def engine(model: str, path: str) -> str:
        return f"openai:{_name(path) if path else model}@http://127.0.0.1:{ports[model]}/v1"

    settings = {"llm": engine(base, "")}
    return settings | {_SETTING[agent]: engine(*adapter) for agent, adapter in adapters.items()}


def _name(adapter: str) -> str:
    """Return the name that a server uses for an adapter: the name of the run's folder."""
    return Path(adapter).resolve().parent.name


def serving_line(serving: Serving, model: str, adapters: Mapping[str, str], port: int, models: int) -> list[str]:
    """Return the arguments of `pyrag serve-model` for one of the models that share the GPUs.

    Args:
        serving: GPUs, memory and additional arguments.
        model: Model to serve.
        adapters: Folders of adapters, by name.
        port: Port of the server.
        models: Number of models; each gets an equal share of the memory.
    """
    line = ["serve-model", model, "--port", str(port), "--tensor-parallel", str(serving.tensor_parallel)]
    line += ["--gpu-memory", f"{serving.gpu_memory / models:.3f}"]
    line += [part for name, path in adapters.items() for part in ("--lora", f"{name}={path}")]
    return [*line, *(["--", *serving.more] if serving.more else [])]


@contextlib.contextmanager
def _server(curriculum: Curriculum, model: str, line: Sequence[str], port: int) -> Iterator[None]:
    gpus = curriculum.serving.gpus
    log = Path(curriculum.out) / f"serving-{port}.log"
    _await_port(port)
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603  our own command
            [*_COMMAND, *line],
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **({"CUDA_VISIBLE_DEVICES": gpus} if gpus else {})},
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        _wait_until_ready(process, port, model, log)
        yield
    finally:
        end(process, signal.SIGTERM, signal.SIGKILL, patience=_PATIENCE)


def _await_port(port: int) -> None:
    """Wait until a port is free, so that no other server can reply. Raises `ConfigError` if it stays in use."""
    until = time.monotonic() + FREE_SECONDS
    while True:
        if is_free(port):
            return
        if time.monotonic() > until:
            raise ConfigError(f"port {port} is taken, and the frozen agents are to be served there: set serving.port")
        time.sleep(_POLL)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, model: str, log: Path) -> None:
    until = time.monotonic() + _READY
    while process.poll() is None and time.monotonic() < until:
        if is_ready(f"http://127.0.0.1:{port}/health"):
            return
        time.sleep(_POLL)
    raise ServiceError(f"vLLM could not serve {model} on port {port}: read {log}", service=model)


def _ask(questions: Questions, settings: Mapping[str, Any], out: Path) -> float:
    """Return the exact match of a benchmark run, which is continued if it exists.

    A question that runs out of time twice counts as unanswered. Raises `ServiceError` for failures outside the method.
    """
    code = _bench(questions, settings, out)
    if code in _SOME_FAILED:
        code = _bench(questions, settings, out)
    if code and (code not in _SOME_FAILED or not _failures(out) <= _OF_AGENTS):
        raise ServiceError(f"pyrag bench ended with code {code}: run the same command to continue {out}")
    return exact_match(out)


def _bench(questions: Questions, settings: Mapping[str, Any], out: Path) -> int:
    return subprocess.run(  # noqa: S603  our own command
        [*_COMMAND, *bench_line(questions, out)],
        stdout=_STDERR,  # stdout of the curriculum only has its results
        env=_with(settings),
        preexec_fn=die_with_parent,
        check=False,
    ).returncode


def bench_line(questions: Questions, out: Path) -> list[str]:
    """Return the arguments of `pyrag bench` for an evaluation.

    Args:
        questions: Question sets and options.
        out: Folder of the run; an existing run is continued.
    """
    line = ["bench", "--data", questions.data, "--sets", ",".join(questions.sets), "--method", questions.method]
    line += ["--out", str(out), "--concurrency", str(questions.concurrency)]
    options = {"--split": questions.split, "--limit": questions.limit, "--retriever": questions.retriever}
    return line + [part for name, value in options.items() if value for part in (name, str(value))]


def exact_match(out: Path) -> float:
    """Return the average over the sets of a finished run of `pyrag bench`, from 0 to 1."""
    return float(_summary(out)["averages"][0]["em"])


def _failures(out: Path) -> set[str]:
    """Return the kinds of a run's errors; "unfinished" for a run that did not finish."""
    summary = _summary(out) if (out / SUMMARY).is_file() else None
    if summary is None or summary["questions"] < summary["expected"]:
        return {"unfinished"}
    return {kind for question_set in summary["sets"] for kind in question_set["all"]["failures"]}


def _summary(out: Path) -> Any:
    import msgspec

    return msgspec.json.decode((out / SUMMARY).read_bytes())


def _with(settings: Mapping[str, Any]) -> dict[str, str]:
    variables = {f"PYRAG_{name.upper()}": str(value) for name, value in settings.items() if value is not None}
    return {**os.environ, **variables}


def _build(task: str, run: Path, out: Path, settings: Mapping[str, Any]) -> None:
    from pyrag_rl.data.build import Request, build

    build(Request(tasks=[task], runs=[run], out=out, leave_out=True, settings=make_settings(settings)))
