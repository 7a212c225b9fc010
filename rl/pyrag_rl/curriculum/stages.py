"""Stages of training, one after the other (PyRAG: Answer, Plan, Decompose; OPERA: Plan, Analysis-Answer, Rewrite).

    start ── evaluate ── stage 1: train, export, evaluate ── stage 2: … ── report

Each stage meets the agents that the stages before it made: they are served while it trains, and its rows may be built
from questions that they run (`build`). A stage after which fewer gate questions come out right, by more than chance
explains, ends the curriculum, with its adapter kept and not used. All that is done is noted in OUT/curriculum.json, so
that the same command goes on after a kill: a run of training or of `pyrag bench` that was under way goes on itself.

What trains, serves and asks is handed in (`CurriculumBackend`); `pyrag_rl.curriculum.backend` has the real ones.
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
from pyrag_rl.curriculum.notes import NOTES, Done, asked_in, chance_loss, check_ranks, noted, percent, write_notes


class WorseError(PyRAGError):
    """A stage made things worse."""

    kind = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`data` is a Parquet file; `build` names the task whose rows are built from a run of the agents so far."""

    name: str
    agent: Agent
    algorithm: Algorithm = "grpo"
    data: str = ""
    build: str = ""
    settings: dict[str, Any] = field(default_factory=dict)  # of `TrainConfig`


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions for `pyrag bench`; fields are options of the command."""

    data: str
    sets: tuple[str, ...]
    split: str = ""
    limit: int | None = None
    method: str = "pyrag"
    retriever: str | None = None
    concurrency: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Servers of the frozen agents; models beyond the first take the ports that follow."""

    port: int = 8000
    gpus: str = ""  # CUDA_VISIBLE_DEVICES of the servers
    tensor_parallel: int = 1
    gpu_memory: float = 0.9  # share of each GPU, for all models together
    more: tuple[str, ...] = ()  # further arguments for `vllm serve`


@dataclass(frozen=True, slots=True, kw_only=True)
class Curriculum:
    """`shared`: one model that every stage trains on; else each agent has its own. `runtime` are settings of pyrag for
    all that is trained, run and measured. `tolerance` is the exact match that a stage may lose, from 0 to 1; None: what
    chance explains for so many questions."""

    model: str
    stages: tuple[Stage, ...]
    evaluation: Questions
    out: str = ""
    practice: Questions | None = None  # the questions that `build` has the agents run
    shared: bool = True
    tolerance: float | None = None
    serving: Serving = Serving()
    runtime: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names):
            raise ConfigError("a curriculum needs stages, each with a name of its own")
        for name in names:
            if not re.fullmatch(r"\w[\w.-]*", name) or name == "start":  # whose evaluation is that of the beginning
                raise ConfigError(f"a stage cannot be called {name!r}: it names folders, with letters, digits, - and .")
        for stage in self.stages:
            if bool(stage.data) == bool(stage.build):
                raise ConfigError(f"stage {stage.name} needs either data, a Parquet file, or build, a task")
            if stage.build and stage.algorithm == "sft":
                raise ConfigError(f"stage {stage.name} builds rows for rewards: name a set of --sft under data instead")
            if stage.build and self.practice is None:
                raise ConfigError(f"stage {stage.name} builds its rows from a run: say under practice what is asked")


# Settings of pyrag under which agents answer, while the servers run.
Served = AbstractContextManager[dict[str, str]]
# An agent's model and adapter ("": the model as it is), by agent.
Adapters = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CurriculumBackend:
    """Everything that a curriculum starts.

    Args:
        check: refuses a config that could not be trained here; without data, all but its rows are looked at.
        train: trains a config to its end and returns its exported adapter, or model if all weights were trained.
        serve: runs models with their adapters.
        ask: runs `pyrag bench` in a folder under settings and returns the exact match.
        build: writes the rows of a task from a run, prompted under settings.
        apart: refuses a config whose rows hold questions of the gate.
        merge: writes a model with an adapter's weights added to its own.
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
        file: a YAML file.
        out: folder of all stages.
        model: model of the curriculum, in place of the file's.
        rows: folder of the training sets and candidates, in place of those in the file.
        prompts: prompts of all that is trained, run and measured, in place of the file's.

    Raises:
        ConfigError: the file has an unknown key or a value of a wrong type.
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
    """Return a stage whose files lie in another folder, under their names."""

    def moved(path: str) -> str:
        return str(Path(folder) / Path(path).name) if path else ""

    settings = dict(stage.settings)
    if settings.get("prescored"):
        settings["prescored"] = moved(settings["prescored"])
    return replace(stage, data=moved(stage.data), settings=settings)


def _check_keys(values: Mapping[str, Any], kind: type[Any], file: Path) -> None:
    """msgspec passes over keys that a dataclass does not have."""
    known = [one.name for one in fields(kind)]
    if unknown := [key for key in values if key not in known]:
        raise ConfigError(f"{file}: unknown key {unknown[0]!r}{nearest(unknown[0], known)}")


def run(curriculum: Curriculum, backend: CurriculumBackend, console: Callable[[str], None] = print) -> list[Done]:
    """Run the stages that are not done yet and return all of them.

    Args:
        curriculum: the stages and how they are measured.
        backend: trains, serves, asks and builds.
        console: called with one line at a time.

    Raises:
        WorseError: a stage lost more exact match than is tolerated.
        PyRAGError: whatever the training of a stage raises.
    """
    return _Run(curriculum, backend, console).all_stages()


class _Run:
    def __init__(self, curriculum: Curriculum, backend: CurriculumBackend, console: Callable[[str], None]) -> None:
        self.curriculum, self.backend, self.console = curriculum, backend, console
        self.out = Path(curriculum.out)
        self.done = noted(self.out / NOTES, identity(curriculum))
        self.base = curriculum.model  # of shared stages: replaced where all weights are trained
        # An agent of another model is that model from the start, so that a stage is compared with its own beginning.
        self.adapters: dict[str, tuple[str, str]] = {
            stage.agent: (self._model(stage), "") for stage in curriculum.stages if not curriculum.shared
        }
        self.servers = ExitStack()
        self.served: tuple[Adapters, dict[str, str]] | None = None

    def all_stages(self) -> list[Done]:
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
        """Refuse now what a later stage would be refused for."""
        finished = {one.name for one in self.done if one.after is not None}
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
        """Settings under which the agents so far answer. They stay served until they are others."""
        if self.served is None or self.served[0] != self.adapters:
            self.servers.close()
            settings = self.servers.enter_context(self.backend.serve(self.curriculum, self.adapters))
            self.served = dict(self.adapters), settings
        return self.served[1]

    def _ask(self, questions: Questions, name: str) -> float:
        return self.backend.ask(questions, {**self.curriculum.runtime, **self._agents()}, self.out / name)

    def _of(self, stage: Stage) -> Done:
        """The stage's notes; its `before` is the `after` of the stage before, as nothing changed in between."""
        found = next((one for one in self.done if one.name == stage.name), None)
        if found is None:
            last = self.done[-1].after if self.done else None
            before = self._ask(self.curriculum.evaluation, "start-evaluation") if last is None else last
            found = Done(stage.name, before)
            self.done.append(found)
            self._note()
        return found

    def _train(self, stage: Stage, done: Done) -> None:
        self.console(f"stage {stage.name}: exact match {percent(done.before)} before")
        config = self._config(stage, str(self._rows(stage)), self._agents())
        result = str(self.backend.train(config))
        done.adapter, done.model = (result, "") if config.lora_rank else ("", result)

    def _measure(self, done: Done) -> None:
        done.after = self._ask(self.curriculum.evaluation, f"{done.name}-evaluation")
        self._note()
        self.console(f"stage {done.name}: exact match {percent(done.after)} after")

    def _judge(self, done: Done) -> None:
        assert done.after is not None
        tolerance = self._tolerance(done)
        if done.after < done.before - tolerance:
            made = (one.adapter or one.model for one in reversed(self.done) if one is not done)
            good = next(made, "") or "the model as it was"
            raise WorseError(
                f"stage {done.name} made things worse: exact match {percent(done.before)} before and "
                f"{percent(done.after)} after it, a loss of more than the {100 * tolerance:.1f} points that are "
                f"tolerated. It is kept in {done.adapter or done.model}, the last good one is {good}: "
                f"look at {self.out / done.name / 'report.html'}, then change the stage and remove its folders "
                f"{self.out / done.name}* and its entry in {self.out / NOTES}, or allow it with a larger tolerance"
            )

    def _tolerance(self, done: Done) -> float:
        gate = self.curriculum.evaluation
        if self.curriculum.tolerance is not None:
            return self.curriculum.tolerance
        asked = asked_in(self.out / f"{done.name}-evaluation") or (gate.limit or 0) * len(gate.sets)
        return chance_loss(done.before, asked)

    def _adopt(self, stage: Stage, done: Done) -> None:
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
        if not rows.is_file():  # a stage that goes on needs the rows it began with
            assert self.curriculum.practice is not None
            self._ask(self.curriculum.practice, f"{stage.name}-practice")
            self.backend.build(stage.build, self.out / f"{stage.name}-practice", rows, self.curriculum.runtime)
        return rows

    def _config(self, stage: Stage, rows: str, frozen: Mapping[str, Any]) -> TrainConfig:
        values = as_values(load_config(stage.agent, stage.algorithm, model=self._model(stage)))
        start = self.adapters.get(stage.agent, ("", ""))[1] if self.curriculum.shared else ""
        if start and not stage.settings.get("lora_rank", values["lora_rank"]):  # all weights, of the model as it now is
            values["model"], start = str(self._merged(stage, values["model"], start)), ""
        retriever = self.curriculum.evaluation.retriever
        given = {"retriever": retriever} if retriever else {}
        layers = (values["runtime"], self.curriculum.runtime, runtime_of(stage.settings), frozen, given)
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
    """Return what must not change between sessions: evaluation, model, and the order of the stages."""
    import msgspec

    evaluation = {key: value for key, value in asdict(curriculum.evaluation).items() if key != "concurrency"}
    retriever = curriculum.evaluation.retriever
    evaluation["retriever"] = retriever and without_secrets(retriever)
    stages = [stage.name for stage in curriculum.stages]
    whole = {"model": curriculum.model, "stages": stages, "evaluation": evaluation}
    return msgspec.json.decode(msgspec.json.encode(whole))  # as it will be read back
