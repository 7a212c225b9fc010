"""Specs of local engines: a model, an adapter and options of the engine. This module loads nothing.

    vllm:MODEL,adapter=NAME=FOLDER,max_model_len=8192
    transformers:FOLDER,dtype=bfloat16

MODEL is a folder saved by transformers, or a name on the hub. Options follow a comma, so that no shell needs
quotes. The engine interprets its options.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag._io.specs import expanded
from pyrag.errors import ConfigError, DataError, nearest
from pyrag.llm.clients.adapters import Adapter, read_adapter

Option = str | int | float | bool

_ADAPTER = "adapter"
_SAMPLE = 1 << 14  # bytes of a sample; a file smaller than all samples together is read completely
_SAMPLES = 64  # evenly spaced samples of a file
_NEXT_OPTION = re.compile(r",(?=\w+=)")
_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_PATH_LIKE = ("/", "./", "../", "~")
_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WINDOWS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """Spec of a local engine.

    Attributes:
        options: Options sorted by name, so that the same options give the same engine.
        folder: Folder of the model; None for a model on the hub.
    """

    engine: str
    model: str
    adapter: Adapter | None = None
    options: tuple[tuple[str, Option], ...] = ()
    folder: Path | None = None

    @property
    def name(self) -> str:
        """Spec in a form that can be parsed again."""
        adapter = [f"{_ADAPTER}={self.adapter.name}={self.adapter.path}"] if self.adapter else []
        options = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in self.options]
        return f"{self.engine}:{','.join([self.model, *adapter, *options])}"

    def option(self, name: str) -> Any:
        """Return the value of an option, or None."""
        return dict(self.options).get(name)


def parse_local_spec(engine: str, rest: str, known: Mapping[str, type]) -> LocalSpec:
    """Parse a spec.

    Args:
        engine: Scheme, such as "vllm".
        rest: Text after `engine:`.
        known: Options of the engine with their types.

    Raises:
        ConfigError: The spec is malformed.
        DataError: A folder holds no model or no adapter.
    """
    model, *written_options = _NEXT_OPTION.split(rest.strip())
    if not model:
        raise ConfigError(f"{engine}: needs a model: write {engine}:FOLDER, or {engine}:NAME for a model on the hub")
    options: dict[str, Option] = {}
    adapter = None
    for option in written_options:
        key, _, text = option.partition("=")
        if key == _ADAPTER:
            adapter = read_adapter(text)
        elif key in known:
            options[key] = _converted(key, text, known[key])
        else:
            raise ConfigError(f"the engine {engine} has no option {key!r}{nearest(key, [_ADAPTER, *known])}")
    return LocalSpec(engine, model, adapter, tuple(sorted(options.items())), model_folder(model))


def model_folder(model: str) -> Path | None:
    """Return the folder of a model; None for a name on the hub. Raises `DataError` if the model does not exist."""
    folder = expanded(model)
    if not folder.is_dir():
        if model.startswith(_PATH_LIKE) or not _HUB_NAME.fullmatch(model):
            raise DataError(
                f"there is no model folder {model}: name a folder saved by transformers, or ORG/NAME on the hub"
            )
        return None
    if not (folder / "config.json").is_file():
        raise DataError(
            f"the folder {model} holds no model (it has no config.json): name a folder saved by transformers"
        )
    return folder


def file_of(spec: LocalSpec, name: str) -> Path | None:
    """Return the path of a model's file, or None if it is not on this machine.

    Args:
        spec: Spec of the model.
        name: Name of the file, such as "config.json".
    """
    if spec.folder is not None:
        path = spec.folder / name
        return path if path.is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    cached = try_to_load_from_cache(spec.model, name)
    return Path(cached) if isinstance(cached, str) else None


def identity_of(spec: LocalSpec) -> str:
    """Return a model's name for keys of stored replies: absolute paths, options, and fingerprints of the files.

    A different model, adapter or revision under the same name or path has a different identity. At most 1 MiB is read
    per file.
    """
    folder = spec.folder
    if folder is None and (config := file_of(spec, "config.json")) is not None:
        folder = config.parent  # the folder of one revision in the hub's cache
    named = [spec.engine, str(folder.resolve()) if folder else spec.model]
    named += [f"{key}={value}" for key, value in spec.options]
    named += [_fingerprint(folder)] if folder else []
    if spec.adapter is not None:
        adapter = Path(spec.adapter.path)
        named += [f"{_ADAPTER}={adapter.resolve()}", _fingerprint(adapter)]
    return json.dumps(named)


def _fingerprint(folder: Path) -> str:
    """Return a digest of a folder's files: names, sizes, modification times, and samples of their content."""
    digest = hashlib.sha256()
    for path in sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")):
        status = path.stat()
        digest.update(json.dumps([path.name, status.st_size, status.st_mtime_ns]).encode())
        with path.open("rb") as file:
            for place in range(0, status.st_size, max(status.st_size // _SAMPLES, _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()[:32]


def known_window(spec: LocalSpec) -> int | None:
    """Return the model's window in tokens, if its files state it; the option `max_model_len` reduces it."""
    file = file_of(spec, "config.json")
    try:
        config = json.loads(file.read_text(encoding="utf-8")) if file else {}
        config = {**config, **(config.get("text_config") or {})}
    except (OSError, ValueError, TypeError, AttributeError):
        config = {}
    stated = next((config[key] for key in _WINDOWS if isinstance(config.get(key), int)), None)
    windows = [size for size in (stated, spec.option("max_model_len")) if size]
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
