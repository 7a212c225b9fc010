"""Specs of engines on this machine: a model, an adapter, options of the engine. Nothing is loaded here.

    vllm:MODEL,adapter=NAME=FOLDER,max_model_len=8192
    transformers:FOLDER,dtype=bfloat16

MODEL is a folder as transformers saves it, or a name on the hub. Options start behind a comma, so that no shell needs
quotes. Left out: what an option means, which is the engine's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag.errors import ConfigError, DataError, nearest
from pyrag.llm.clients.adapters import Adapter, expanded, read_adapter

Option = str | int | float | bool

_ADAPTER = "adapter"
_SAMPLE = 1 << 14  # bytes; smaller files than all samples together are read whole
_SAMPLES = 64  # of a file, evenly spaced
_NEXT_OPTION = re.compile(r",(?=\w+=)")
_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_PATH_LIKE = ("/", "./", "../", "~")
_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WINDOWS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """`options` are sorted, so that equal ones mean one engine. `folder` is None where the model is one of a hub."""

    engine: str
    model: str
    adapter: Adapter | None = None
    options: tuple[tuple[str, Option], ...] = ()
    folder: Path | None = None

    @property
    def name(self) -> str:
        """The spec as it can be written again."""
        adapter = [f"{_ADAPTER}={self.adapter.name}={self.adapter.path}"] if self.adapter else []
        options = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in self.options]
        return f"{self.engine}:{','.join([self.model, *adapter, *options])}"

    def option(self, name: str) -> Any:
        """Return the value of an option, or None."""
        return dict(self.options).get(name)


def parse_local_spec(engine: str, rest: str, known: Mapping[str, type]) -> LocalSpec:
    """Read a spec.

    Args:
        engine: The scheme, such as "vllm".
        rest: The text behind `engine:`.
        known: The engine's options with their types.

    Raises:
        ConfigError: The spec is in no known form.
        DataError: A folder holds no model or no adapter.
    """
    model, *given = _NEXT_OPTION.split(rest.strip())
    if not model:
        raise ConfigError(f"{engine}: needs a model: write {engine}:FOLDER, or {engine}:NAME for one of the hub")
    options: dict[str, Option] = {}
    adapter = None
    for one in given:
        key, _, text = one.partition("=")
        if key == _ADAPTER:
            adapter = read_adapter(text)
        elif key in known:
            options[key] = _converted(key, text, known[key])
        else:
            raise ConfigError(f"the engine {engine} has no option {key!r}{nearest(key, [_ADAPTER, *known])}")
    return LocalSpec(engine, model, adapter, tuple(sorted(options.items())), model_folder(model))


def model_folder(model: str) -> Path | None:
    """The folder of a model; None for a name on the hub. Raises `DataError` where there is no model."""
    folder = expanded(model)
    if not folder.is_dir():
        if model.startswith(_PATH_LIKE) or not _HUB_NAME.fullmatch(model):
            raise DataError(f"there is no model folder {model}: give one as transformers saves it, or a hub's ORG/NAME")
        return None
    if not (folder / "config.json").is_file():
        raise DataError(f"the folder {model} holds no model (it has no config.json): give one as transformers saves it")
    return folder


def file_of(spec: LocalSpec, name: str) -> Path | None:
    """Return the path of a model's file, or None if it is not on this machine.

    Args:
        spec: Names the model.
        name: Name of the file, such as "config.json".
    """
    if spec.folder is not None:
        path = spec.folder / name
        return path if path.is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(spec.model, name)
    return Path(found) if isinstance(found, str) else None


def identity_of(spec: LocalSpec) -> str:
    """Return a model's name for keys of kept replies: absolute paths, options, and fingerprints of the files.

    Another model, adapter or revision under the same name or path has another identity. Reads at most 1 MiB per file.
    """
    folder = spec.folder
    if folder is None and (config := file_of(spec, "config.json")) is not None:
        folder = config.parent  # of one revision of the hub
    named = [spec.engine, str(folder.resolve()) if folder else spec.model]
    named += [f"{key}={value}" for key, value in spec.options]
    named += [_fingerprint(folder)] if folder else []
    if spec.adapter is not None:
        adapter = Path(spec.adapter.path)
        named += [f"{_ADAPTER}={adapter.resolve()}", _fingerprint(adapter)]
    return json.dumps(named)


def _fingerprint(folder: Path) -> str:
    """Return a digest of the files of a folder: names, sizes, times of change, and samples of their content."""
    digest = hashlib.sha256()
    for path in sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith(".")):
        status = path.stat()
        digest.update(json.dumps([path.name, status.st_size, status.st_mtime_ns]).encode())
        with path.open("rb") as file:
            for place in range(0, status.st_size, max(status.st_size // _SAMPLES, _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:32]


def known_window(spec: LocalSpec) -> int | None:
    """The model's window in tokens, as far as its files tell; an option `max_model_len` makes it smaller."""
    file = file_of(spec, "config.json")
    try:
        config = json.loads(file.read_text(encoding="utf-8")) if file else {}
        config = {**config, **(config.get("text_config") or {})}
    except (OSError, ValueError, TypeError, AttributeError):
        config = {}
    told = next((config[key] for key in _WINDOWS if isinstance(config.get(key), int)), None)
    windows = [one for one in (told, spec.option("max_model_len")) if one]
    return min(windows, default=None)


def _converted(key: str, text: str, wanted: type) -> Option:
    try:
        value = _WORDS[text.lower()] if wanted is bool else wanted(text)
    except (ValueError, KeyError):
        value = None
    if value is None or value == "" or (wanted in (int, float) and value <= 0):
        what = {int: "a number above 0", float: "a number above 0", bool: "true or false"}.get(wanted, "a value")
        raise ConfigError(f"the option {key} takes {what}, not {text!r}")
    return value
