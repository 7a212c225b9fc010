"""LoRA adapters in PEFT's format: a folder with a name.

This module only examines files; the engines load them. Adapters that are still on a hub are not supported, since their
rank is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.specs import expanded
from pyrag.errors import ConfigError, DataError

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # ranks for which vLLM has kernels
CONFIG_FILE = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_NAME = re.compile(r"[\w.+:-]+")


@dataclass(frozen=True, slots=True)
class Adapter:
    """LoRA adapter; `rank` is the largest rank of its matrices."""

    name: str
    path: str
    rank: int


def read_adapter(spec: str) -> Adapter:
    """Return the adapter of `NAME=FOLDER`, or of `FOLDER`, which is then named after the last part of its path.

    Raises:
        ConfigError: The name is invalid.
        DataError: The folder holds no adapter.
    """
    name, equals, path = spec.partition("=")
    folder = expanded(path if equals else name).absolute()
    name = name if equals else folder.name
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of an adapter: write NAME=FOLDER, the name without spaces")
    return Adapter(name, str(folder), _rank(folder))


def lora_rank(ranks: Iterable[int]) -> int:
    """Return the smallest rank at which vLLM can serve adapters of these ranks. Raises `ConfigError` above 512."""
    largest = max(ranks)
    for allowed in RANKS:
        if largest <= allowed:
            return allowed
    raise ConfigError(f"an adapter of rank {largest} cannot be served: vLLM takes at most {RANKS[-1]}")


def _rank(folder: Path) -> int:
    if not (folder / CONFIG_FILE).is_file() or not any((folder / name).is_file() for name in _WEIGHTS):
        there = "is not a LoRA adapter" if folder.is_dir() else "does not exist"
        raise DataError(f"the adapter {folder} {there}: give the folder with {CONFIG_FILE} and {_WEIGHTS[0]}")
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        rank, patterns = config["r"], config.get("rank_pattern") or {}
        ranks: list[int] = [rank, *patterns.values()]
        if config.get("peft_type", "LORA") != "LORA" or not all(isinstance(rank, int) and rank > 0 for rank in ranks):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / CONFIG_FILE} does not describe a LoRA adapter: save it again with PEFT") from error
    return max(ranks)
