"""Loading of settings from `pyrag.toml`, the environment and flags, in ascending order of precedence.

    pyrag.toml      llm = "openai:Qwen2.5-7B-Instruct@http://127.0.0.1:8000/v1"
    environment     PYRAG_LLM=…
    command line    --llm …

An unknown key is an error that names the nearest known key. Relative paths in a file are relative to its folder.
"""

from __future__ import annotations

import os
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pyrag._io.specs import expanded, parse_named_spec
from pyrag.errors import ConfigError, nearest
from pyrag.llm.request_options import merged, read_requests
from pyrag.settings.declaration import ENVIRONMENT_PREFIX
from pyrag.settings.values import PROFILES, Settings, declarations
from pyrag_prompts import PROMPT_SETS

CONFIG_NAME = "pyrag.toml"
# Variables with our prefix that are not settings: secrets, and the location of the settings file.
_OTHER_VARIABLES = {
    "PYRAG_API_KEY", "PYRAG_API_KEY_FILE", "PYRAG_CONFIG", "PYRAG_HEADERS", "PYRAG_HEADERS_FILE", "PYRAG_MCP_TOKEN",
    "PYRAG_SERVE_API_KEY",
}  # fmt: skip
_NAMED_PLACE = re.compile(r"([\w.-]+=)(.+)", re.DOTALL)
_SCHEME = re.compile(r"[\w+]+:")
_TRUTHS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)
_SOURCES = ("index", "retriever", "sources")
_DATA_TOOLS = ("sql", "table")  # schemes of tools that read a file and run no code of it


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Load settings from file, environment and flags.

    Args:
        flags: Values by name, which take precedence over all others. None counts as missing.
        config: Settings file; by default the file named by PYRAG_CONFIG, or else `pyrag.toml` in the current folder.
        environ: Environment variables; by default the process's.

    Raises:
        ConfigError: A name is unknown, or a value has the wrong type.
    """
    environ = os.environ if environ is None else environ
    path = config or (Path(environ["PYRAG_CONFIG"]) if environ.get("PYRAG_CONFIG") else None)
    layers = [_from_file(path), _from_environment(environ)]
    layers.append({key: value for key, value in (flags or {}).items() if value is not None})
    values: dict[str, Any] = {}
    for layer in layers:
        values = layered(values, layer)
    return make_settings(values)


def layered(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two layers of plain values. A source of passages replaces the other; request options are merged.

    Args:
        lower: Values with lower precedence.
        upper: Values with higher precedence.
    """
    sources = set(_SOURCES) if upper.keys() & set(_SOURCES) else set()
    values = {key: value for key, value in lower.items() if key not in sources} | dict(upper)
    if "request" in lower and "request" in upper:
        values["request"] = merged(read_requests(lower["request"]), read_requests(upper["request"]))
    return values


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Return validated settings from plain values and their profile's values. Raises `ConfigError`."""
    known = declarations()
    values = with_sources(layered(PROFILES.get(str(values.get("profile")), {}), values))
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown setting {key!r}{nearest(key, known)}")
    return Settings(**{key: _checked(key, value, known[key].type) for key, value in values.items()})


def with_sources(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which lists of indexes and retrievers become the setting `sources`.

    Args:
        values: Plain values by name.
    """
    values = dict(values)
    lists = {name: values[name] for name in ("index", "retriever") if isinstance(values.get(name), list | tuple)}
    if not lists:
        return values
    sources = [place for name in lists for place in _texts(name, values.pop(name))]
    sources += [values.pop(name) for name in ("index", "retriever") if values.get(name) is not None]
    sources += _texts("sources", values.pop("sources", ()))
    return {**values, "sources": tuple(sources)} if sources else values


def _from_file(path: Path | None) -> dict[str, Any]:
    chosen = path is not None
    if path is None:
        path = Path(CONFIG_NAME)
        if not path.is_file():
            return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the config file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for key in values:
        if key not in declarations():
            raise ConfigError(f"{path}: unknown setting {key!r}{nearest(key, declarations())}")
    return _with_paths(values, path, chosen=chosen)


def _with_paths(values: dict[str, Any], path: Path, *, chosen: bool) -> dict[str, Any]:
    """Return the values of a settings file, with paths made relative to the file's folder."""
    values = dict(values)
    for key in ("index", "sources"):
        if isinstance(values.get(key), list):
            values[key] = [_source_of_file(text, path.parent) for text in _texts(key, values[key])]
    for key in ("index", "prompts", "cache", "tokenizer", "experience", "ca_bundle"):
        if isinstance(values.get(key), str) and not (key == "prompts" and values[key] in PROMPT_SETS):
            values[key] = str(path.parent / expanded(values[key]))
    if "tools" in values:
        values["tools"] = [_tool_of_file(spec, path, chosen=chosen) for spec in _texts("tools", values["tools"])]
    return values


def _source_of_file(text: str, folder: Path) -> str:
    """Return a source's spec from a settings file, with its path made relative to the file's folder."""
    match = _NAMED_PLACE.fullmatch(text)
    name, place = (match[1], match[2]) if match else ("", text)
    if _SCHEME.match(place):
        return text
    return name + str(folder / expanded(place))


def _tool_of_file(spec: str, path: Path, *, chosen: bool) -> str:
    """Return a tool's spec from a settings file, with its path made relative to the file's folder.

    A file that was merely found in the current folder may not name a module, whose code would run.
    """
    name, (scheme, rest) = parse_named_spec(spec)
    if scheme in _DATA_TOOLS:
        return f"{f'{name}=' if name else ''}{scheme}:{path.parent / expanded(rest)}"
    if not chosen:
        raise ConfigError(
            f"{path} names the tool {spec!r}, which is code: pass it with --tools, or name this file with --config"
        )
    return spec


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        key = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if key not in declarations():
            names = [*(known.variable for known in declarations().values()), *sorted(_OTHER_VARIABLES)]
            raise ConfigError(f"unknown environment variable {variable}{nearest(variable, names)}")
        values[key] = text
    return values


def _checked(key: str, value: Any, wanted: Any) -> Any:
    """Check that a value has the expected type; convert text from the environment."""
    if key == "request":
        return read_requests(value)
    if key in ("tools", "sources"):
        return _texts(key, value)
    if typing.get_origin(wanted) is Literal:
        if value not in typing.get_args(wanted):
            raise ConfigError(f"{key} must be one of {', '.join(typing.get_args(wanted))}, not {value!r}")
        return value
    options = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    if isinstance(value, str) and (str not in options or bool in options):
        value = _parsed(key, value, options)
    if value is None and types.NoneType in options:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and float in options:
        value = float(value)
    if (isinstance(value, bool) and bool not in options) or not isinstance(value, options):
        names = " or ".join(option.__name__ for option in options if option is not types.NoneType)
        raise ConfigError(f"{key} must be of type {names}, not {value!r}")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    """Return a list of texts; a single text, from the environment, is split at commas."""
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{key} must be a list of texts, not {value!r}")
    return tuple(text.strip() for text in texts if text.strip())


def _parsed(key: str, text: str, options: tuple[Any, ...]) -> Any:
    if bool in options:
        return _TRUTHS.get(text.strip().lower(), text)
    if types.NoneType in options and text.strip().lower() in ("", "none"):
        return None
    for option in (int, float):
        if option in options:
            try:
                return option(text)
            except ValueError:
                continue
    return text
