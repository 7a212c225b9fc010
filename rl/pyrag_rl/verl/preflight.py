"""Checks before a run starts. Each fails with one sentence that also says what to do.

Settings that verl itself refuses are checked by `pyrag_rl.verl.launch.composed`, which composes verl's configuration.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyrag._io.specs import expanded
from pyrag.errors import ConfigError, DataError, install_extra
from pyrag.evaluation.metrics import normalise
from pyrag.llm.clients.vllm_library import check_library
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings, make_settings
from pyrag_rl.config import TrainConfig, packaged_name
from pyrag_rl.data.rows import TrainRow, read_rows
from pyrag_rl.mapgrpo.rewards import AnalysisWeights, PlanWeights, RewriteWeights, weights_of
from pyrag_rl.verl.sizes import check_shape, check_sizes

INSTALL = install_extra("rl")
_WEIGHTS: Mapping[str, Callable[[Mapping[str, float]], object]] = {
    "mapgrpo-plan": partial(weights_of, PlanWeights),
    "mapgrpo-answer": partial(weights_of, AnalysisWeights),
    "rewrite": partial(weights_of, RewriteWeights),
}
_GPU_INSTALL = "pip install 'verl[vllm]==0.9.1'"


_MIN_SAVES = 10  # minimum number of checkpoints of a run, so that a killed run loses a tenth at most


def saving_often(config: TrainConfig, steps: int) -> TrainConfig:
    """Return the configuration with `save_every` limited to a tenth of the run.

    Args:
        config: Configuration of the run.
        steps: Number of steps of the run.
    """
    return replace(config, save_every=min(config.save_every, max(1, steps // _MIN_SAVES)))


def check(config: TrainConfig) -> None:
    """Check a run completely. Raises `ConfigError` or `DataError`."""
    check_named(config)
    check_setup(config)
    check_prescored(config)
    check_data(config)


def check_setup(config: TrainConfig) -> None:
    """Check packages, the machine and the model, but not the rows. Raises `ConfigError`."""
    check_packages(config)
    if config.profile == "gpu":
        check_gpus(config)
    check_model(config)
    check_sizes(config)
    check_shape(config, model_shape(config.model))
    if config.algorithm != "sft":
        check_rewards(config)


def check_rewards(config: TrainConfig) -> None:
    """Check the weights of the reward, and that the frozen agents can be opened, without contacting them."""
    check = _WEIGHTS.get(packaged_name(config.agent, config.algorithm))
    if check:
        check(config.role_weights)
    elif config.role_weights:
        raise ConfigError(f"role_weights are of OPERA's rewards: leave them out for {config.agent} by grpo")
    asyncio.run(_open_once(make_settings(config.runtime)))


async def _open_once(settings: Settings) -> None:
    await open_engines(settings).aclose()


def check_named(config: TrainConfig) -> None:
    for name, example in (("model", "a folder or hub name"), ("data", "a Parquet file"), ("out", "a new folder")):
        if not getattr(config, name):
            raise ConfigError(f"{name} is missing: pass --{name} with {example}")


def check_packages(config: TrainConfig) -> None:
    """Check that packages are installed, without importing them. Raises `ConfigError` if something is missing."""
    needed = {"verl": INSTALL, "transfer_queue": INSTALL, "ray": INSTALL}
    if config.rollout == "vllm" and config.algorithm != "sft":
        needed["vllm"] = _GPU_INSTALL if config.profile == "gpu" else "make train-env"
    if config.trainer_mode == "separate_async":
        needed["cupy"] = "pip install cupy-cuda12x (or the one of your CUDA)"  # sends weights over NCCL
    for package, cure in needed.items():
        if find_spec(package) is None:
            raise ConfigError(f"training needs the package {package}, which is not installed: {cure}")
    if "vllm" in needed:
        check_library()
    if config.trainer_mode != "sync" and not _has_mode(config.trainer_mode):
        raise ConfigError(f"the installed verl has no trainer_mode={config.trainer_mode}: install verl 0.9.1")


def _has_mode(mode: str) -> bool:
    spec = find_spec("verl")
    if spec is None or spec.origin is None:
        return False
    return (Path(spec.origin).parent / f"trainer/ppo/v1/trainer_{mode}.py").is_file()


def check_gpus(config: TrainConfig) -> None:
    import torch

    count, wanted = torch.cuda.device_count(), config.gpus + config.rollout_gpus
    if count >= wanted:
        return
    if not count:
        cure = "this machine has none: run it on a GPU node, or a small model with --profile cpu"
    elif config.rollout_gpus:
        cure = f"this machine has {count}: set gpus and rollout_gpus to fewer"
    else:
        cure = f"this machine has {count}: set gpus to that"
    raise ConfigError(f"the profile gpu wants {wanted} GPU{'s' if wanted > 1 else ''}, and {cure}")


def check_model(config: TrainConfig) -> None:
    """Check that a model that looks like a path is a folder with a model. Other names are left to the hub."""
    path = expanded(config.model)
    looks_like_path = config.model.startswith((".", "/", "~")) or config.model.count("/") > 1 or path.exists()
    if looks_like_path and not (path / "config.json").is_file():
        raise ConfigError(f"{config.model} holds no model: a folder with config.json, weights and tokenizer is needed")
    if config.adapter:
        check_adapter(config.adapter, config)


def check_adapter(adapter: str, config: TrainConfig) -> None:
    """Check an adapter to start from against the settings, because verl would use its rank and alpha in any case.

    Args:
        adapter: Folder of a PEFT adapter.
        config: Configuration of the run.

    Raises:
        ConfigError: The folder is not an adapter, or it has another rank or alpha.
    """
    try:
        values = json.loads((Path(adapter) / "adapter_config.json").read_text(encoding="utf-8"))
        rank, alpha = int(values["r"]), values["lora_alpha"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{adapter} holds no PEFT adapter: pass what pyrag train export wrote") from error
    if not config.lora_rank:
        raise ConfigError(
            f"lora_rank=0 trains all weights, and {adapter} is an adapter: merge it first "
            "(pyrag train export --merged) and pass the merged folder with --model"
        )
    if (rank, alpha) != (config.lora_rank, config.lora_alpha):
        raise ConfigError(
            f"the adapter {adapter} has rank {rank} and alpha {alpha:g}, and the settings are lora_rank="
            f"{config.lora_rank} and lora_alpha={config.lora_alpha}: set lora_rank={rank} and lora_alpha={alpha:g}"
        )


def model_shape(model: str) -> Mapping[str, Any]:
    """Return the `config.json` of a model.

    Raises:
        ConfigError: The file cannot be read.
    """
    path = expanded(model) / "config.json"
    try:
        if path.is_file():
            shape: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        else:
            from transformers import PretrainedConfig

            shape = PretrainedConfig.get_config_dict(model)[0] or {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"the config of the model {model} cannot be read: {' '.join(str(error).split())}") from error
    return shape


def check_prescored(config: TrainConfig) -> None:
    """Check that the file of candidates has candidates for questions of the training set. Raises `DataError`."""
    if config.prescored is None:
        return
    from pyrag_rl.mapgrpo.prescored import best_of

    best = best_of(Path(config.prescored), config.least_score)
    if not any((row.source, row.id) in best for row in read_rows(Path(config.data))):
        raise DataError(
            f"{config.prescored} has no candidate with a score of at least {config.least_score:g} for a question of "
            f"{config.data}: build it from that set with pyrag train prescore, or lower least_score"
        )


def check_data(config: TrainConfig) -> None:
    """Check that the rows are for the agent, have gold answers, fill a batch, and share no question between sets."""
    if config.algorithm == "sft":
        return
    rows = check_sets(config)
    if len(rows) < config.batch_size:
        raise DataError(
            f"{config.data} has {len(rows)} rows, fewer than a batch of {config.batch_size}: "
            "add rows, or set batch_size lower"
        )


def check_sets(config: TrainConfig) -> Sequence[TrainRow]:
    """Check agent and gold answers of the rows, and that no question is in both sets; return the training rows."""
    rows = _checked_rows(config.data, config)
    if config.eval_data:
        held = _checked_rows(config.eval_data, config)
        shared = {normalise(row.question) for row in rows} & {normalise(row.question) for row in held}
        if shared:
            raise DataError(
                f"{len(shared)} questions are in both {config.data} and {config.eval_data}, "
                f"such as {min(shared)!r}: train and evaluate on different ones"
            )
    return rows


def _checked_rows(path: str, config: TrainConfig) -> Sequence[TrainRow]:
    rows = read_rows(Path(path))
    for number, row in enumerate(rows, start=1):
        if not any(answer.strip() for answer in row.answers):
            raise DataError(f"{path} row {number} has no gold answer, so nothing can be rewarded: leave it out")
        if row.agent != config.agent:
            raise DataError(f"{path} row {number} is for the agent {row.agent}, not {config.agent}: pass a set for it")
        if config.reward == "coverage" and not row.supporting:
            raise DataError(
                f"{path} row {number} names no gold passages, which reward=coverage counts: build the set from data "
                "sets that have them"
            )
        if config.algorithm == "mapgrpo" and (task := _task_instead(row)):
            raise DataError(f"{path} row {number} is not for mapgrpo: build the set with pyrag train data {task}")
    return rows


def _task_instead(row: TrainRow) -> str:
    """Return the task for building the set, if the row is not for OPERA's agent; otherwise empty."""
    if row.agent == "plan":
        return "goals" if row.sub_queries else ""
    if row.agent == "answer":
        return "analysis" if row.sufficient is None or row.documents is None else ""
    return "" if row.supporting else "rewrite"
