"""Training stages in a row (PyRAG: Answer, Plan, Decompose; OPERA: Plan, Analysis-Answer, Rewrite).

    start ── evaluate ── stage 1: train, export, evaluate ── stage 2: … ── report

Each stage uses the agents of earlier stages: they are served while it trains, and its rows may be built from questions
that they answer (`build`). If a stage answers fewer gate questions correctly than before, by more than chance explains,
the curriculum ends; the stage's adapter is kept but not used. Progress is recorded in OUT/curriculum.json, so that the
same command continues after a kill, including an unfinished run of training or of `pyrag bench`.

A `CurriculumBackend` trains, serves and evaluates; `pyrag_rl.curriculum.backend` has the real one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError, PyRAGError, nearest
from pyrag.evaluation.runs.folder import locked, make_folder
from pyrag.settings import layered
from pyrag_rl.config import (
    Agent,
    Algorithm,
    TrainConfig,
    as_values,
    load_config,
    make_config,
    read_yaml,
    runtime_of,
    with_smaller_updates,
)
from pyrag_rl.curriculum.notes import (
    NOTES,
    StageProgress,
    asked_in,
    chance_loss,
    check_ranks,
    noted,
    percent,
    write_notes,
)


class WorseError(PyRAGError):
    """Error for a stage that made the agents worse."""

    kind = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Stage of training. `data` is a Parquet file; `build` is a task with rows from a run of the agents so far."""

    name: str
    agent: Agent
    algorithm: Algorithm = "grpo"
    data: str = ""
    build: str = ""
    settings: dict[str, Any] = field(default_factory=dict)  # settings of `TrainConfig`


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions for `pyrag bench`; the fields are options of the command."""

    data: str
    sets: tuple[str, ...]
    split: str = ""
    limit: int | None = None
    method: str = "pyrag"
    retriever: str | None = None
    concurrency: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Servers for the frozen agents. Additional models get the ports that follow."""

    port: int = 8000
    gpus: str = ""  # CUDA_VISIBLE_DEVICES of the servers
    tensor_parallel: int = 1
    gpu_memory: float = 0.9  # share of each GPU, for all models together
    more: tuple[str, ...] = ()  # further arguments for `vllm serve`


@dataclass(frozen=True, slots=True, kw_only=True)
class Curriculum:
    """Stages with their evaluation.

    If `shared`, every stage trains the same model; otherwise, each agent has its own. `runtime` has settings of pyrag
    for all training, runs and measurements. `tolerance` is the exact match that a stage may lose, from 0 to 1; None for
    a loss that chance explains, given the number of questions.
    """

    model: str
    stages: tuple[Stage, ...]
    evaluation: Questions
    out: str = ""
    practice: Questions | None = None  # questions that the agents run for `build`
    shared: bool = True
    tolerance: float | None = None
    serving: Serving = Serving()
    runtime: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ConfigError("a curriculum needs stages, each with a name of its own")
        for name in names:
            if not re.fullmatch(r"\w[\w.-]*", name) or name == "start":  # the first evaluation is called "start"
                raise ConfigError(f"a stage cannot be called {name!r}: it names folders, with letters, digits, - and .")
        for stage in self.stages:
            if bool(stage.data) == bool(stage.build):
                raise ConfigError(f"stage {stage.name} needs either data, a Parquet file, or build, a task")
            if stage.build and stage.algorithm == "sft":
                raise ConfigError(
                    f"stage {stage.name} trains with sft, but build writes rows for rewards: "
                    "name rows of --sft under data instead"
                )
            if stage.build and self.practice is None:
                raise ConfigError(f"stage {stage.name} builds its rows from a run: say under practice what is asked")


# Context in which servers run, with the settings of pyrag under which agents answer.
Served = AbstractContextManager[dict[str, str]]
# Model and adapter of each agent; an empty adapter means the model itself.
Adapters = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CurriculumBackend:
    """Operations that a curriculum starts.

    Args:
        check: Refuses a configuration that cannot be trained here. Without data, everything except the rows is checked.
        train: Trains a configuration to the end. Returns the exported adapter, or the model if all weights were
            trained.
        serve: Serves models with their adapters.
        ask: Runs `pyrag bench` in a folder with settings. Returns the exact match.
        build: Writes the rows of a task from a run, with prompts for the settings.
        apart: Refuses a configuration whose rows contain questions of the gate.
        merge: Writes a model with the weights of an adapter added to its own.
    """

    check: Callable[[TrainConfig], None]
    train: Callable[[TrainConfig], Path]
    serve: Callable[[Curriculum, Adapters], Served]
    ask: Callable[[Questions, Mapping[str, Any], Path], float]
    build: Callable[[str, Path, Path, Mapping[str, Any]], None]
    apart: Callable[[TrainConfig, Questions], None] = lambda config, questions: None
    merge: Callable[[str, str, Path], None] = lambda model, adapter, out: None


def load_curriculum(
    file: Path, out: str, *, model: str | None = None, rows: str | None = None, prompts: str | None = None
) -> Curriculum:
    """Read a curriculum.

    Args:
        file: A YAML file.
        out: Folder of all stages.
        model: Model of the curriculum, instead of the file's.
        rows: Folder of the training sets and candidates, instead of the paths in the file.
        prompts: Prompts for all training, runs and measurements, instead of the file's.

    Raises:
        ConfigError: The file has an unknown key or a value of a wrong type.
    """
    import msgspec

    values = {**read_yaml(file), "out": out}
    if model:
        values["model"] = model
    if prompts:
        values["runtime"] = {**runtime_of(values), "prompts": prompts}
    try:
        made = msgspec.convert(values, Curriculum)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from error
    _check_keys(values, Curriculum, file)
    for kind, key in ((Questions, "evaluation"), (Questions, "practice"), (Serving, "serving")):
        _check_keys(values.get(key) or {}, kind, file)
    for stage in values["stages"]:
        _check_keys(stage, Stage, file)
    return made if rows is None else replace(made, stages=tuple(_with_rows(stage, rows) for stage in made.stages))


def _with_rows(stage: Stage, folder: str) -> Stage:
    """Return a stage whose files are in another folder, under the same names."""

    def moved(path: str) -> str:
        return str(Path(folder) / Path(path).name) if path else ""

    settings = dict(stage.settings)
    if settings.get("prescored"):
        settings["prescored"] = moved(settings["prescored"])
    return replace(stage, data=moved(stage.data), settings=settings)


def _check_keys(values: Mapping[str, Any], kind: type[Any], file: Path) -> None:
    """Raise `ConfigError` for unknown keys, which msgspec ignores."""
    known = [attribute.name for attribute in fields(kind)]
    if unknown := [key for key in values if key not in known]:
        raise ConfigError(f"{file}: unknown key {unknown[0]!r}{nearest(unknown[0], known)}")


def run(
    curriculum: Curriculum, backend: CurriculumBackend, console: Callable[[str], None] = print
) -> list[StageProgress]:
    """Run the stages that are not done yet, and return all stages.

    Args:
        curriculum: Stages and their evaluation.
        backend: Operations that train, serve, ask and build.
        console: Called with one line at a time.

    Raises:
        WorseError: A stage lost more exact match than is tolerated.
        PyRAGError: The training of a stage failed.
    """
    return _Run(curriculum, backend, console).all_stages()


class _Run:
    def __init__(self, curriculum: Curriculum, backend: CurriculumBackend, console: Callable[[str], None]) -> None:
        self.curriculum, self.backend, self.console = curriculum, backend, console
        self.out = Path(curriculum.out)
        self.done = noted(self.out / NOTES, identity(curriculum))
        self.base = curriculum.model  # model of shared stages, replaced when all weights are trained
        # An agent with another model starts with it, so that its stage is compared with its own beginning.
        self.adapters: dict[str, tuple[str, str]] = {
            stage.agent: (self._model(stage), "") for stage in curriculum.stages if not curriculum.shared
        }
        self.servers = ExitStack()
        self.served: tuple[Adapters, dict[str, str]] | None = None

    def all_stages(self) -> list[StageProgress]:
        self._check()
        make_folder(self.out)
        with locked(self.out), self.servers:
            for stage in self.curriculum.stages:
                done = self._of(stage)
                if done.after is None:
                    self._train(stage, done)
                self._adopt(stage, done)
                if done.after is None:
                    self._measure(done)
                self._judge(done)
        return self.done

    def _check(self) -> None:
        """Refuse invalid configurations of later stages now, rather than when their turn comes."""
        finished = {stage.name for stage in self.done if stage.after is not None}
        if not self.curriculum.evaluation.split:
            sets = ", ".join(self.curriculum.evaluation.sets)
            self.console(
                f"the gates measure the questions of {sets} that are to be reported, which selects on them: draw "
                "others with pyrag train gate, and set evaluation.split to gate"
            )
        before: TrainConfig | None = None
        for stage in self.curriculum.stages:
            config = self._config(stage, stage.data, {})
            if stage.name not in finished:
                self.backend.check(config)
                if stage.data:
                    self.backend.apart(config, self.curriculum.evaluation)
            if self.curriculum.shared:
                check_ranks(before, config, stage.name)
            before = config

    def _agents(self) -> dict[str, str]:
        """Return settings for the agents so far. Their servers run until the agents change."""
        if self.served is None or self.served[0] != self.adapters:
            self.servers.close()
            settings = self.servers.enter_context(self.backend.serve(self.curriculum, self.adapters))
            self.served = dict(self.adapters), settings
        return self.served[1]

    def _ask(self, questions: Questions, name: str) -> float:
        return self.backend.ask(questions, {**self.curriculum.runtime, **self._agents()}, self.out / name)

    def _of(self, stage: Stage) -> StageProgress:
        """Return the progress of a stage. Its `before` is the previous stage's `after`."""
        progress = next((entry for entry in self.done if entry.name == stage.name), None)
        if progress is None:
            last = self.done[-1].after if self.done else None
            before = self._ask(self.curriculum.evaluation, "start-evaluation") if last is None else last
            progress = StageProgress(stage.name, before)
            self.done.append(progress)
            self._note()
        return progress

    def _train(self, stage: Stage, done: StageProgress) -> None:
        self.console(f"stage {stage.name}: exact match {percent(done.before)} before")
        config = self._config(stage, str(self._rows(stage)), self._agents())
        result = str(self.backend.train(config))
        done.adapter, done.model = (result, "") if config.lora_rank else ("", result)

    def _measure(self, done: StageProgress) -> None:
        done.after = self._ask(self.curriculum.evaluation, f"{done.name}-evaluation")
        self._note()
        self.console(f"stage {done.name}: exact match {percent(done.after)} after")

    def _judge(self, done: StageProgress) -> None:
        assert done.after is not None
        tolerance = self._tolerance(done)
        if done.after < done.before - tolerance:
            made = (stage.adapter or stage.model for stage in reversed(self.done) if stage is not done)
            good = next(made, "") or "the model as it was"
            raise WorseError(
                f"stage {done.name} made things worse: exact match {percent(done.before)} before and "
                f"{percent(done.after)} after it, a loss of more than the {100 * tolerance:.1f} points that are "
                f"tolerated. It is kept in {done.adapter or done.model}, the last good one is {good}: "
                f"look at {self.out / done.name / 'report.html'}, then change the stage and remove its folders "
                f"{self.out / done.name}* and its entry in {self.out / NOTES}, or allow it with a larger tolerance"
            )

    def _tolerance(self, done: StageProgress) -> float:
        gate = self.curriculum.evaluation
        if self.curriculum.tolerance is not None:
            return self.curriculum.tolerance
        asked = asked_in(self.out / f"{done.name}-evaluation") or (gate.limit or 0) * len(gate.sets)
        return chance_loss(done.before, asked)

    def _adopt(self, stage: Stage, done: StageProgress) -> None:
        model = done.model or self._model(stage)
        if self.curriculum.shared:
            self.base = model
        agents = ("answer", "plan", "decompose", "rewrite") if self.curriculum.shared else (stage.agent,)
        self.adapters |= dict.fromkeys(agents, (model, done.adapter))

    def _model(self, stage: Stage) -> str:
        return str(stage.settings.get("model", self.base if self.curriculum.shared else self.curriculum.model))

    def _rows(self, stage: Stage) -> Path:
        if stage.data:
            return Path(stage.data)
        rows = self.out / f"{stage.name}.parquet"
        if not rows.is_file():  # a stage that is continued needs the rows it started with
            assert self.curriculum.practice is not None
            self._ask(self.curriculum.practice, f"{stage.name}-practice")
            self.backend.build(stage.build, self.out / f"{stage.name}-practice", rows, self.curriculum.runtime)
        return rows

    def _config(self, stage: Stage, rows: str, frozen: Mapping[str, Any]) -> TrainConfig:
        values = as_values(load_config(stage.agent, stage.algorithm, model=self._model(stage)))
        start = self.adapters.get(stage.agent, ("", ""))[1] if self.curriculum.shared else ""
        if start and not stage.settings.get("lora_rank", values["lora_rank"]):  # trains all weights of the merged model
            values["model"], start = str(self._merged(stage, values["model"], start)), ""
        retriever = self.curriculum.evaluation.retriever
        own = {"retriever": retriever} if retriever else {}
        layers = (values["runtime"], self.curriculum.runtime, runtime_of(stage.settings), frozen, own)
        runtime: Mapping[str, Any] = functools.reduce(layered, layers)
        fixed = {"adapter": start or None, "data": rows, "out": str(self.out / stage.name), "runtime": runtime}
        return make_config(with_smaller_updates({**values, **stage.settings, **fixed}, stage.settings))

    def _merged(self, stage: Stage, model: str, adapter: str) -> Path:
        merged = self.out / f"{stage.name}-start"
        if not merged.is_dir():
            self.backend.merge(model, adapter, merged)
        return merged

    def _note(self) -> None:
        write_notes(self.out / NOTES, identity(self.curriculum), self.done)


def identity(curriculum: Curriculum) -> Any:
    """Return everything that must stay the same between sessions: evaluation, model, and the order of the stages."""
    import msgspec

    evaluation = {key: value for key, value in asdict(curriculum.evaluation).items() if key != "concurrency"}
    retriever = curriculum.evaluation.retriever
    evaluation["retriever"] = retriever and without_secrets(retriever)
    stages = [stage.name for stage in curriculum.stages]
    whole = {"model": curriculum.model, "stages": stages, "evaluation": evaluation}
    return msgspec.json.decode(msgspec.json.encode(whole))  # in the form in which it will be read
