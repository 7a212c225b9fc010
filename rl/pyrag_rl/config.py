"""Settings of a training run: a dataclass, filled from a packaged YAML file, a user's file and flags, in this order.

    rl/configs/NAME.yaml    the papers' values: `answer`, `plan`, …, `mapgrpo-plan`, …, `sft` (see `packaged_name`)
    --config FILE           any of the keys below
    --set key=value, flags  any of the keys below

An unknown key is an error, which names the nearest known key. `pyrag_rl.verl.overrides` renders a configuration for
verl, and `pyrag_rl.verl.preflight` checks whether this machine can run it.
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
from pyrag._io.specs import expanded
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
_MINIMUMS = {
    "group_size": 2, "mini_batch_size": 1, "max_steps": 1, "lora_rank": 0, "repairs": 0, "seed": 0, "kl_coef": 0,
    "f1_weight": 0, "em_weight": 0, "eval_every": 0, "save_every": 1, "keep_checkpoints": 1, "trace_every": 0,
    "threads": 0, "rollout_gpus": 0, "sync_every": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """All settings of a run. Paths are kept as the user wrote them; lengths are in tokens."""

    # What to train, with which data, and where to store it.
    agent: Agent
    algorithm: Algorithm = "grpo"
    model: str = ""  # folder or hub name for transformers, or `embedded` for the recipe of the embedded reader
    adapter: str | None = None  # PEFT folder to start from, such as the adapter of the previous stage
    data: str = ""  # Parquet file of `TrainRow`s (see `pyrag train data`)
    eval_data: str | None = None  # Parquet file without questions of `data`; evaluated before, during and after
    out: str = ""  # folder of the run
    profile: Profile = "gpu"
    seed: int = 1  # seed of the order of rows and of sampling

    # Optimisation.
    learning_rate: float = 1e-6
    schedule: Literal["constant", "cosine"] = "constant"
    min_learning_rate: float = 0.0  # final learning rate of a cosine, as a share of the learning rate
    warmup: float = 0.0  # share of all steps
    batch_size: int = 32  # questions per step
    mini_batch_size: int | None = None  # questions per update; None for all questions of a step
    micro_batch_size: int = 4  # sequences processed together on a GPU
    group_size: int = 8  # completions per question (verl's rollout n)
    norm_adv_by_std: bool = True  # divide advantages by the standard deviation of their group
    epochs: int = 1
    max_steps: int | None = None  # maximum number of steps, which may end the run before its epochs
    kl_coef: float = 0.001  # weight of the low-variance KL loss against the initial model
    entropy_coef: float = 0.0
    lora_rank: int = 64  # rank of the adapter; 0 trains all weights
    lora_alpha: int = 32
    prompt_tokens: int = 2048
    response_tokens: int = 1024
    temperature: float = 1.0

    # Reward. `answer`: f1_weight · F1 + em_weight · EM of the answer. `coverage` (plan, decompose): share of the gold
    # passages that the program retrieved.
    reward: RewardKind = "answer"
    f1_weight: float = 0.7
    em_weight: float = 0.3
    role_weights: dict[str, float] = field(default_factory=dict)  # MAPGRPO: λ, α, w of OPERA's eq. 7, 9, 10 by part
    ndcg_k: int = 10  # k of the Rewrite agent's √NDCG@k (eq. 10)
    shuffle_rewards: bool = False  # control experiment: each completion gets another completion's score
    repairs: int = 0  # repair turns of the Plan agent; above 0, the program agent loop also trains on them

    # High-score sample selection (MAPGRPO, eq. 11).
    prescored: str | None = None  # file of pre-scored candidates; None for no injection
    least_score: float = 0.7  # minimum score of an injected candidate
    injected: Literal["no_gradient", "gradient"] = "no_gradient"  # whether to learn from the injected sample itself

    # Settings of the runtime that computes rewards: any of `pyrag.Settings`, for frozen agents, retriever and limits.
    runtime: dict[str, Any] = field(default_factory=dict)

    # Logs and checkpoints.
    loggers: tuple[str, ...] = ("tensorboard",)  # verl's loggers in addition to console and file: tensorboard, wandb, …
    eval_every: int = 50  # steps between evaluations; 0 for evaluations before and after only
    save_every: int = 50  # steps between checkpoints, at most a tenth of the run; the last step is always saved
    keep_checkpoints: int = 2
    trace_every: int = 64  # scored completions per stored trace; 0 for no traces
    dump_rollouts: bool = True

    # Machine.
    constrained: bool = True  # whether vLLM's rollouts must match the JSON schema or pattern of the agent's requests
    rollout: str = "vllm"  # verl's rollout engine; `hf_cpu` is the test engine of the profile cpu-smoke
    threads: int = 0  # threads per process in the profile cpu; 0 for one per core
    gradient_checkpointing: bool = True  # on GPUs; False stores activations, which is faster for small models
    # verl's trainer: rollouts and updates alternate; rollouts continue during updates; or rollouts have their own GPUs.
    trainer_mode: TrainerMode = "sync"
    gpus: int = 8  # GPUs for updates, and for rollouts unless trainer_mode is separate_async
    rollout_gpus: int = 0  # further GPUs for the rollouts of separate_async
    sync_every: int = 4  # updates between two synchronisations of the rollouts' weights in separate_async
    nodes: int = 1  # number of machines; more than 1 is refused
    tensor_parallel: int = 2  # GPUs per model copy of the rollout
    gpu_memory: float = 0.6  # share of a GPU's memory for the rollout
    reward_workers: int = 8
    agent_workers: int = 8

    def __post_init__(self) -> None:
        for name, minimum in _MINIMUMS.items():
            value = getattr(self, name)
            if value is not None and not minimum <= value < math.inf:  # also refuses NaN
                raise ConfigError(f"{name} must be at least {minimum}, not {value}")
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
        """True for profiles without an accelerator."""
        return self.profile != "gpu"

    @property
    def checkpoints_activations(self) -> bool:
        """True if the backward pass recomputes activations."""
        return self.gradient_checkpointing and not self.on_cpu

    @property
    def compiles(self) -> bool:
        """True if a supervised run is so long that compiling layers saves time."""
        return self.profile == "cpu"

    def _check_agent(self) -> None:
        if self.algorithm == "mapgrpo" and self.agent == "decompose":
            raise ConfigError("mapgrpo trains the agents plan, answer and rewrite: decompose is PyRAG's, use grpo")
        if self.prescored and (self.algorithm, self.agent, self.repairs) != ("mapgrpo", "plan", 0):
            raise ConfigError("prescored candidates are plans: set algorithm mapgrpo, agent plan and repairs 0")
        if self.reward == "coverage" and (self.algorithm != "grpo" or self.agent not in ("plan", "decompose")):
            raise ConfigError(
                f"reward=coverage scores programs: use it with grpo and the agents plan and decompose, not with "
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
        agent: Either answer, plan, decompose or rewrite.
        algorithm: Either grpo, sft (which has a single file for all agents), or mapgrpo (which has its own files for
            the agents plan and answer).
    """
    if algorithm == "sft":
        return "sft"
    return f"mapgrpo-{agent}" if algorithm == "mapgrpo" and agent != "rewrite" else agent


def load_config(agent: str, algorithm: str = "grpo", *, file: Path | None = None, **flags: Any) -> TrainConfig:
    """Return the configuration of a run.

    Args:
        agent: Either answer, plan, decompose or rewrite.
        algorithm: Either grpo, sft or mapgrpo.
        file: A user's YAML file, which overrides the packaged one.
        flags: Settings that override both files; None is ignored.

    Raises:
        ConfigError: An agent, algorithm or setting is unknown, or a value is out of its range.
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
    if values.get("profile", "gpu") != "gpu":  # the packaged files are written for a node of GPUs
        values = {**values, **{name: 1 for name in ("gpus", "tensor_parallel") if name not in {**own, **flags}}}
    return make_config(with_smaller_updates(values, {**own, **flags}))


def with_smaller_updates(values: dict[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Return the settings, with updates and packs that fit into a `batch_size` which was made smaller.

    Args:
        values: All settings.
        own: Names of the user's own settings, which do not change.
    """
    batch, update, pack = (values.get(name) for name in ("batch_size", "mini_batch_size", "micro_batch_size"))
    if not isinstance(batch, int) or not isinstance(update, int):
        return values
    if "mini_batch_size" not in own:
        update = min(batch, update)
    if isinstance(pack, int) and "batch_size" in own and "micro_batch_size" not in own:
        replies = update * int(values.get("group_size") or 1) // int(values.get("gpus") or 1)
        pack = max(min(pack, replies), 1)
        values = {**values, "micro_batch_size": pack}
    return {**values, "mini_batch_size": update}


def runtime_of(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pyrag settings among a run's settings. Raises `ConfigError` if they are not a mapping."""
    runtime = values.get("runtime") or {}
    if not isinstance(runtime, Mapping):
        raise ConfigError(f"runtime holds settings of pyrag, as in runtime: {{topk: 5}}, not {runtime!r}")
    return runtime


def make_config(values: Mapping[str, Any]) -> TrainConfig:
    """Return a valid configuration from plain values. Raises `ConfigError` if a value is not valid."""
    import msgspec

    known = [attribute.name for attribute in fields(TrainConfig)]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown training setting {key!r}{nearest(key, known)}")
    try:
        return msgspec.convert(dict(values), TrainConfig, strict=False)  # YAML reads 3e-5 as text
    except msgspec.ValidationError as error:
        raise ConfigError(f"training setting: {error}") from error


def with_settings(config: TrainConfig, pairs: list[str]) -> TrainConfig:
    """Return the configuration with command-line settings applied.

    Args:
        config: Configuration to start from.
        pairs: Settings of the form `key=value` or `runtime.key=value`, with YAML values.

    Raises:
        ConfigError: A key is unknown, a value is not YAML, or the packaged configuration depends on the key.
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
    """Return the configuration as plain values, which `make_config` accepts."""
    return {**asdict(config), "loggers": list(config.loggers)}


def as_yaml(config: TrainConfig) -> str:
    text: str = _yaml().safe_dump(as_values(config), sort_keys=False, allow_unicode=True)
    return text


def save_config(config: TrainConfig, path: Path) -> None:
    """Write the configuration as YAML, replacing the file in one step.

    Args:
        config: Configuration of a run.
        path: File that `saved_config` will read.
    """
    write_atomic(path, as_yaml(config).encode())


def saved_config(path: Path) -> TrainConfig:
    """Read a configuration that `save_config` wrote. Raises `ConfigError` if the file cannot be read."""
    return make_config(read_yaml(path))


def absolute(config: TrainConfig) -> TrainConfig:
    """Return the configuration with absolute paths, for other processes; hub names are left unchanged."""

    def fixed(path: str | None) -> str | None:
        named = expanded(path) if path else None
        return str(named.resolve()) if named and named.exists() else path

    return replace(
        config,
        model=fixed(config.model) or "",
        adapter=fixed(config.adapter),
        data=fixed(config.data) or "",
        eval_data=fixed(config.eval_data),
        prescored=fixed(config.prescored),
        out=str(expanded(config.out).resolve()) if config.out else "",
    )


def read_yaml(path: Path | Traversable) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raises `ConfigError` if the file cannot be read."""
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
    """Return the folder `rl/configs`: inside the package in a wheel, next to it in a checkout."""
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
