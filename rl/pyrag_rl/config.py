"""Settings of a training run: one dataclass, from a packaged YAML file, a user's file and flags, in rising order.

    rl/configs/NAME.yaml    the papers' values: `answer`, `plan`, …, `mapgrpo-plan`, …, `sft` (see `packaged_name`)
    --config FILE           any of the keys below
    --set key=value, flags  any of the keys below

A key that nobody knows is an error naming the nearest one. `pyrag_rl.verl.overrides` renders a config for verl. Left
out: what only verl needs to know, and whether this machine can run it (`pyrag_rl.verl.preflight`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pyrag._io.files import write_atomic
from pyrag.errors import ConfigError, install_extra, nearest
from pyrag.settings import layered, make_settings

Agent = Literal["answer", "plan", "decompose", "rewrite"]
Algorithm = Literal["grpo", "mapgrpo", "sft"]
Profile = Literal["gpu", "cpu", "cpu-smoke"]
TrainerMode = Literal["sync", "colocate_async", "separate_async"]
RewardKind = Literal["answer", "coverage"]
EMBEDDED = "embedded"  # the model of runs of the recipe that trains the embedded reader
_RECIPE = "the embedded reader is trained by a recipe of the checkout: run python -m recipes.span_policy --help"
_FRACTIONS = ("warmup", "gpu_memory", "min_learning_rate", "least_score")
_AT_LEAST = {
    "group_size": 2, "mini_batch_size": 1, "max_steps": 1, "lora_rank": 0, "repairs": 0, "seed": 0, "kl_coef": 0,
    "f1_weight": 0, "em_weight": 0, "eval_every": 0, "save_every": 1, "keep_checkpoints": 1, "trace_every": 0,
    "threads": 0, "rollout_gpus": 0, "sync_every": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """All knobs of a run. Paths are as the user wrote them; lengths are in tokens."""

    # What is trained, on what, into where.
    agent: Agent
    algorithm: Algorithm = "grpo"
    model: str = ""  # a folder or hub name that transformers can load; `embedded`: the embedded reader, in a recipe
    adapter: str | None = None  # a PEFT folder to start from (the curriculum's previous stage)
    data: str = ""  # a Parquet file of `TrainRow`s (see `pyrag train data`)
    eval_data: str | None = None  # another one that shares no question with it; evaluated before, during and after
    out: str = ""  # the run folder
    profile: Profile = "gpu"
    seed: int = 1  # of the order of rows and of sampling

    # Optimisation.
    learning_rate: float = 1e-6
    schedule: Literal["constant", "cosine"] = "constant"
    min_learning_rate: float = 0.0  # share of the learning rate that a cosine ends at
    warmup: float = 0.0  # share of all steps
    batch_size: int = 32  # questions a step
    mini_batch_size: int | None = None  # questions an update; None: all of the step's
    micro_batch_size: int = 4  # sequences at once on a GPU
    group_size: int = 8  # completions a question (verl's rollout n)
    norm_adv_by_std: bool = True  # divide a reward's distance from its group's mean by the group's deviation
    epochs: int = 1
    max_steps: int | None = None  # ends the run before its epochs do
    kl_coef: float = 0.001  # of the low-variance KL loss against the start
    entropy_coef: float = 0.0
    lora_rank: int = 64  # 0: all weights
    lora_alpha: int = 32
    prompt_tokens: int = 2048
    response_tokens: int = 1024
    temperature: float = 1.0

    # Reward. `answer`: f1_weight · F1 + em_weight · EM of the answer; `coverage` (plan, decompose): the share of gold
    # passages among those that the program retrieved.
    reward: RewardKind = "answer"
    f1_weight: float = 0.7
    em_weight: float = 0.3
    role_weights: dict[str, float] = field(default_factory=dict)  # MAPGRPO: λ, α, w of OPERA's eq. 7, 9, 10 by part
    ndcg_k: int = 10  # of the Rewrite agent's √NDCG@k (eq. 10)
    shuffle_rewards: bool = False  # a control: each completion gets the score of another one
    repairs: int = 0  # turns of the Plan agent after a failure; above 0, the program agent loop trains them too

    # High-score sample selection (MAPGRPO, eq. 11).
    prescored: str | None = None  # the file of pre-scored candidates; None: none is injected
    least_score: float = 0.7  # of a pre-scored candidate; a question whose best has less gets none
    injected: Literal["no_gradient", "gradient"] = "no_gradient"  # whether an injected sample is learnt from itself

    # The runtime that rewards are made by: any of `pyrag.Settings`, for the frozen agents, retriever and limits.
    runtime: dict[str, Any] = field(default_factory=dict)

    # Watching, keeping.
    loggers: tuple[str, ...] = ("tensorboard",)  # verl's, besides console and file: tensorboard, wandb, …
    eval_every: int = 50  # steps; 0: before and after only
    save_every: int = 50  # steps, and at least every tenth of the run; the last one is always saved
    keep_checkpoints: int = 2
    trace_every: int = 64  # one of so many scored completions leaves its trace in the run folder; 0: none
    dump_rollouts: bool = True

    # Machine.
    constrained: bool = True  # vLLM's rollouts keep to the JSON schema or pattern that the agent asks servers for
    rollout: str = "vllm"  # verl's rollout engine; `hf_cpu` is the test-only one of the profile cpu-smoke
    threads: int = 0  # of the profile cpu, for each process; 0: one a core
    gradient_checkpointing: bool = True  # on GPUs; False keeps activations, which is faster for small models
    # verl's trainer: rollouts and updates in turns; rollouts that go on during updates; or on GPUs of their own.
    trainer_mode: TrainerMode = "sync"
    gpus: int = 8  # for updates; for rollouts too, unless trainer_mode is separate_async
    rollout_gpus: int = 0  # further GPUs, of separate_async
    sync_every: int = 4  # updates from one synchronisation of the rollouts' weights to the next, of separate_async
    nodes: int = 1  # more are refused
    tensor_parallel: int = 2  # of the rollout
    gpu_memory: float = 0.6  # share of a GPU that the rollout may take
    reward_workers: int = 8
    agent_workers: int = 8

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not least <= value < math.inf:  # which NaN is not either
                raise ConfigError(f"{name} must be at least {least}, not {value}")
        for name in _FRACTIONS:
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be above 0, not {getattr(self, name)}")
        if (self.mini_batch_size or 1) > self.batch_size:
            raise ConfigError(f"mini_batch_size {self.mini_batch_size} is larger than batch_size {self.batch_size}")
        self._check_agent()
        make_settings(self.runtime)

    @property
    def on_cpu(self) -> bool:
        """True for the profiles without an accelerator."""
        return self.profile != "gpu"

    @property
    def checkpoints_activations(self) -> bool:
        """True where the backward pass computes activations again."""
        return self.gradient_checkpointing and not self.on_cpu

    @property
    def compiles(self) -> bool:
        """True where a supervised run is long enough for compiled layers to pay."""
        return self.profile == "cpu"

    def _check_agent(self) -> None:
        if self.algorithm == "mapgrpo" and self.agent == "decompose":
            raise ConfigError("mapgrpo trains the agents plan, answer and rewrite: decompose is PyRAG's, use grpo")
        if self.prescored and (self.algorithm, self.agent, self.repairs) != ("mapgrpo", "plan", 0):
            raise ConfigError("prescored candidates are plans: they go with mapgrpo, agent plan and repairs 0")
        if self.reward == "coverage" and (self.algorithm != "grpo" or self.agent not in ("plan", "decompose")):
            raise ConfigError(
                f"reward=coverage scores programs: it goes with grpo and the agents plan and decompose, not with "
                f"{self.algorithm} and {self.agent}"
            )
        if self.repairs and self.agent != "plan":
            raise ConfigError(f"repairs are turns of the plan agent: leave them out for {self.agent}")


_POSITIVE = (
    "learning_rate", "batch_size", "micro_batch_size", "epochs", "prompt_tokens", "response_tokens", "temperature",
    "ndcg_k", "gpus", "nodes", "tensor_parallel", "reward_workers", "agent_workers",
)  # fmt: skip


def packaged_name(agent: str, algorithm: str) -> str:
    """Return the name of the packaged file that a run starts from.

    Args:
        agent: answer, plan, decompose or rewrite.
        algorithm: grpo; sft, which has one file for all agents; or mapgrpo, which has files of its own for the agents
            plan and answer.
    """
    if algorithm == "sft":
        return "sft"
    return f"mapgrpo-{agent}" if algorithm == "mapgrpo" and agent != "rewrite" else agent


def load_config(agent: str, algorithm: str = "grpo", *, file: Path | None = None, **flags: Any) -> TrainConfig:
    """Return the config of a run.

    Args:
        agent: answer, plan, decompose or rewrite.
        algorithm: grpo, sft or mapgrpo.
        file: a user's YAML file, over the packaged one.
        flags: settings over both; those that are None are left out.

    Raises:
        ConfigError: an unknown agent, algorithm or setting, or a value out of its range.
    """
    if agent not in _choices("agent"):
        raise ConfigError(f"there is no agent {agent!r}{nearest(agent, _choices('agent'))}")
    if algorithm not in _choices("algorithm"):
        raise ConfigError(f"there is no algorithm {algorithm!r}{nearest(algorithm, _choices('algorithm'))}")
    own = read_yaml(file) if file else {}
    flags = {key: value for key, value in flags.items() if value is not None}
    if {**own, **flags}.get("model") == EMBEDDED:
        raise ConfigError(_RECIPE)
    name = packaged_name(agent, algorithm)
    source = _packaged() / f"{name}.yaml"
    if not source.is_file():
        raise ConfigError(f"there is no packaged config {name}: choose another agent or algorithm")
    values: dict[str, Any] = {}
    for layer in (read_yaml(source), own, flags):
        runtime = layered(values.get("runtime", {}), runtime_of(layer))
        values = {**values, **layer, "runtime": runtime}
    values = {**values, "agent": agent, "algorithm": algorithm}
    return make_config(with_smaller_updates(values, {**own, **flags}))


def with_smaller_updates(values: dict[str, Any], given: Collection[str]) -> dict[str, Any]:
    """Return the values with `mini_batch_size` limited by a `batch_size` that was made smaller.

    Args:
        values: all settings.
        given: names of the settings that the user set; nothing changes where `mini_batch_size` is among them.
    """
    batch, update = values.get("batch_size"), values.get("mini_batch_size")
    if "mini_batch_size" in given or not isinstance(batch, int) or not isinstance(update, int):
        return values
    return {**values, "mini_batch_size": min(batch, update)}


def runtime_of(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """pyrag's settings among those of a training. Raises `ConfigError` where they are none."""
    runtime = values.get("runtime") or {}
    if not isinstance(runtime, Mapping):
        raise ConfigError(f"runtime holds settings of pyrag, as in runtime: {{topk: 5}}, not {runtime!r}")
    return runtime


def make_config(values: Mapping[str, Any]) -> TrainConfig:
    """A checked config from plain values. Raises `ConfigError`."""
    import msgspec

    known = [one.name for one in fields(TrainConfig)]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown training setting {key!r}{nearest(key, known)}")
    try:
        return msgspec.convert(dict(values), TrainConfig, strict=False)  # for YAML, 3e-5 is text
    except msgspec.ValidationError as error:
        raise ConfigError(f"training setting: {error}") from error


def with_settings(config: TrainConfig, pairs: list[str]) -> TrainConfig:
    """Return the config with settings of the command line applied.

    Args:
        config: the config to start from.
        pairs: `key=value` or `runtime.key=value`; values are YAML.

    Raises:
        ConfigError: an unknown key, a value that is not YAML, or a key that the packaged config depends on.
    """
    yaml = _yaml()
    values = as_values(config)
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set takes key=value, not {pair!r}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of --set {pair!r} is not YAML: quote it") from error
        if (key, value) == ("model", EMBEDDED):
            raise ConfigError(_RECIPE)
        if key in ("agent", "algorithm"):
            raise ConfigError(f"--set is too late for {key}, which the packaged settings go by: pass --{key} {value}")
        if key.startswith("runtime."):
            values["runtime"] = layered(runtime_of(values), {key.removeprefix("runtime."): value})
        else:
            values[key] = value
    return make_config(with_smaller_updates(values, {pair.partition("=")[0] for pair in pairs}))


def as_values(config: TrainConfig) -> dict[str, Any]:
    """The config as plain values, as `make_config` takes them."""
    return {**asdict(config), "loggers": list(config.loggers)}


def as_yaml(config: TrainConfig) -> str:
    text: str = _yaml().safe_dump(as_values(config), sort_keys=False, allow_unicode=True)
    return text


def save_config(config: TrainConfig, path: Path) -> None:
    """Write the config as YAML, replacing the file in one step.

    Args:
        config: the config of a run.
        path: where `saved_config` will read it.
    """
    write_atomic(path, as_yaml(config).encode())


def saved_config(path: Path) -> TrainConfig:
    """Read a config that `save_config` wrote. Raises `ConfigError`."""
    return make_config(read_yaml(path))


def absolute(config: TrainConfig) -> TrainConfig:
    """With the paths that other processes will read made absolute; hub names stay as they are."""

    def fixed(path: str | None) -> str | None:
        named = Path(path).expanduser() if path else None
        return str(named.resolve()) if named and named.exists() else path

    return replace(
        config,
        model=fixed(config.model) or "",
        adapter=fixed(config.adapter),
        data=fixed(config.data) or "",
        eval_data=fixed(config.eval_data),
        prescored=fixed(config.prescored),
        out=str(Path(config.out).expanduser().resolve()) if config.out else "",
    )


def read_yaml(path: Path | Traversable) -> dict[str, Any]:
    """The mapping in a YAML file. Raises `ConfigError`."""
    yaml = _yaml()
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the training config {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path} holds no settings: write `key: value` lines")
    return values


def _packaged() -> Traversable:
    """`rl/configs`: inside the package where it was installed from a wheel, beside it in a checkout."""
    inside = files("pyrag_rl") / "configs"
    return inside if inside.is_dir() else Path(__file__).parents[1] / "configs"


def _choices(name: str) -> tuple[str, ...]:
    return {"agent": Agent, "algorithm": Algorithm}[name].__args__  # type: ignore[attr-defined,no-any-return]


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ConfigError(f"training needs PyYAML and verl: {install_extra('rl')}") from error
    return yaml
