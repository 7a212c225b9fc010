"""LoRA adapters as PEFT saves them: a folder, known by a name.

Looks at files only; loading is the engines'. Left out: adapters that are still on a hub, whose rank nobody knows here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import ConfigError, DataError

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM has kernels for
CONFIG_FILE = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_NAME = re.compile(r"[\w.+:-]+")


@dataclass(frozen=True, slots=True)
class Adapter:
    """`rank` is that of its matrices."""

    name: str
    path: str
    rank: int


def read_adapter(given: str) -> Adapter:
    """The adapter of `NAME=FOLDER`, or of `FOLDER`, whose last part is its name then.

    Raises `ConfigError` for a senseless name and `DataError` where there is no adapter.
    """
    name, equals, path = given.partition("=")
    folder = expanded(path if equals else name).absolute()
    name = name if equals else folder.name
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for an adapter: write NAME=FOLDER, the name without spaces")
    return Adapter(name, str(folder), _rank(folder))


def expanded(path: str) -> Path:
    """With the home folder for `~`; unchanged where nobody has that name, or can have it."""
    return Path(path if "\0" in path else os.path.expanduser(path))  # noqa: PTH111 (Path's own raises)


def lora_rank(ranks: Iterable[int]) -> int:
    """The least that vLLM can be started with for adapters of these ranks. Raises `ConfigError` above 512."""
    most = max(ranks)
    for allowed in RANKS:
        if most <= allowed:
            return allowed
    raise ConfigError(f"an adapter of rank {most} cannot be served: vLLM takes at most {RANKS[-1]}")


def _rank(folder: Path) -> int:
    if not (folder / CONFIG_FILE).is_file() or not any((folder / name).is_file() for name in _WEIGHTS):
        there = "is no LoRA adapter" if folder.is_dir() else "does not exist"
        raise DataError(f"the adapter {folder} {there}: give the folder with {CONFIG_FILE} and {_WEIGHTS[0]}")
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        rank, patterns = config["r"], config.get("rank_pattern") or {}
        ranks: list[int] = [rank, *patterns.values()]
        if config.get("peft_type", "LORA") != "LORA" or not all(isinstance(one, int) and one > 0 for one in ranks):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / CONFIG_FILE} does not describe a LoRA adapter: save it again with PEFT") from error
    return max(ranks)
