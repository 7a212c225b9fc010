"""Checks that sizes divide one another, before a run starts, because verl only checks this after minutes.

Each message names the settings and values that would work. `preflight` checks packages, models and rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

from pyrag.errors import ConfigError
from pyrag_rl.config import TrainConfig

MAX_LORA_RANK = 512  # vLLM's limit
PADDING_TOKENS = 128  # tokens of the rows with which verl fills up a batch
# Keys of a model's config.json whose values vLLM splits over the GPUs of a replica.
_SPLIT = (
    ("num_attention_heads", "attention heads"),
    ("num_key_value_heads", "key-value heads"),
    ("intermediate_size", "columns of its feed-forward layers"),
)


def check_sizes(config: TrainConfig) -> None:
    """Check the sizes that depend only on the settings.

    Args:
        config: Configuration of the run.

    Raises:
        ConfigError: A number is not a multiple of another as verl requires.
    """
    if config.nodes > 1:
        raise ConfigError(
            f"nodes={config.nodes} is not supported: Ray is started on this machine only, and frozen agents and "
            "retriever are found at loopback addresses. Set nodes=1 and gpus to the GPUs of one machine"
        )
    if config.algorithm == "sft":
        _check_supervised(config)
        return
    _check_updates(config)
    if config.on_cpu:
        _check_micro_batches(config)
    _check_rollout(config)
    if config.lora_rank > MAX_LORA_RANK:
        raise ConfigError(f"vLLM serves adapters up to rank {MAX_LORA_RANK}: set lora_rank to at most that")


def check_shape(config: TrainConfig, shape: Mapping[str, Any]) -> None:
    """Check that vLLM can split the model over the GPUs of a replica.

    Args:
        config: Configuration of the run.
        shape: The model's `config.json`.

    Raises:
        ConfigError: The model cannot be split.
    """
    if config.rollout != "vllm" or config.algorithm == "sft":
        return
    shape = {**shape, **shape.get("text_config", {})}
    if fault := _unsplit(shape, config.tensor_parallel):
        gpus = config.rollout_gpus or config.gpus
        sizes = ", ".join(str(size) for size in _divisors_of(gpus) if not _unsplit(shape, size))
        raise ConfigError(
            f"the model has {fault}, which tensor_parallel={config.tensor_parallel} cannot share out: set "
            f"tensor_parallel to one of {sizes}"
        )


def _unsplit(shape: Mapping[str, Any], parts: int) -> str:
    """Return the part of a model that cannot be split equally; empty if all parts can."""
    for key, what in _SPLIT:
        count = shape.get(key)
        copied = key == "num_key_value_heads" and isinstance(count, int) and parts % count == 0
        if isinstance(count, int) and count % parts and not copied:
            return f"{count} {what}"
    return ""


def _check_updates(config: TrainConfig) -> None:
    questions, group, gpus = config.mini_batch_size or config.batch_size, config.group_size, config.gpus
    if questions * group % gpus:
        step = gpus // gcd(gpus, group)
        below, above = questions // step * step, (questions // step + 1) * step
        sizes = " or ".join(str(size) for size in (below, above) if size > 0)
        beyond = f" (and batch_size to at least {above})" if above > config.batch_size else ""
        fits = max(count for count in range(1, gpus + 1) if questions * group % count == 0)
        raise ConfigError(
            f"mini_batch_size · group_size = {questions} · {group} = {questions * group} completions per step, "
            f"which {gpus} GPUs cannot share equally: set gpus={fits}, or mini_batch_size to {sizes}{beyond}"
        )
    if config.trainer_mode == "separate_async" and config.batch_size != config.sync_every * questions:
        raise ConfigError(
            f"trainer_mode=separate_async needs batch_size = sync_every · mini_batch_size, not {config.batch_size} and "
            f"{config.sync_every} · {questions}: set batch_size={config.sync_every * questions}, or "
            "sync_every and mini_batch_size to match"
        )


def _check_micro_batches(config: TrainConfig) -> None:
    """Check that micro-batches divide the batch on a CPU. (On GPUs, verl packs sequences as they fit.)"""
    questions, group, gpus = config.mini_batch_size or config.batch_size, config.group_size, config.gpus
    if config.batch_size * group % gpus:
        raise ConfigError(
            f"batch_size · group_size = {config.batch_size * group} is not a multiple of the {gpus} processes: set "
            f"batch_size to a multiple of {gpus // gcd(gpus, group)}"
        )
    share, micro = questions * group // gpus, config.micro_batch_size
    if share % micro:
        sizes = ", ".join(str(size) for size in _divisors_of(share))
        raise ConfigError(
            f"mini_batch_size · group_size / gpus = {share} completions of a process in a gradient step, which is not "
            f"a multiple of micro_batch_size {micro}: set micro_batch_size to one of {sizes}"
        )


def _check_rollout(config: TrainConfig) -> None:
    separate = config.trainer_mode == "separate_async"
    name, gpus = ("rollout_gpus", config.rollout_gpus) if separate else ("gpus", config.gpus)
    if separate and not gpus:
        raise ConfigError("trainer_mode=separate_async rolls out on GPUs of its own: set rollout_gpus to their number")
    if not separate and config.rollout_gpus:
        raise ConfigError("rollout_gpus are those of trainer_mode=separate_async: leave them out, or set that mode")
    if gpus % config.tensor_parallel:
        sizes = ", ".join(str(size) for size in _divisors_of(gpus))
        raise ConfigError(
            f"{name}={gpus} is not a multiple of tensor_parallel={config.tensor_parallel}: set tensor_parallel to one "
            f"of {sizes}, or {name} to a multiple"
        )


def _check_supervised(config: TrainConfig) -> None:
    if config.batch_size % config.gpus:
        size = max(config.batch_size // config.gpus, 1) * config.gpus
        raise ConfigError(
            f"batch_size {config.batch_size} is not a multiple of the {config.gpus} GPUs: verl would drop the rest of "
            f"each batch. Set batch_size={size}, or gpus to a divisor"
        )


def _divisors_of(number: int) -> list[int]:
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]
