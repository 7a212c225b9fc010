"""Settings: one dataclass, filled from `pyrag.toml`, the environment and flags, in rising order of precedence.

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
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError, nearest
from pyrag.llm.request_options import merged, read_requests
from pyrag_prompts import PROMPT_SETS

CONFIG_NAME = "pyrag.toml"
ENVIRONMENT_PREFIX = "PYRAG_"
# Variables with our prefix that are not settings: secrets, and the location of the settings file.
_OTHER_VARIABLES = {"PYRAG_API_KEY", "PYRAG_API_KEY_FILE", "PYRAG_CONFIG", "PYRAG_MCP_TOKEN", "PYRAG_SERVE_API_KEY"}
_SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_TRUTHS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)

_MIN_CONTEXT = 512  # tokens: the Answer agent's own prompt must fit
_MIN_CALL = 60.0  # seconds
_NO_DEADLINE_CALL = 600.0  # seconds
DATA_TOOLS = ("sql", "table")  # schemes of tools that read a file and run no code of it
_TOOL = re.compile(r"(?:(\w+)=)?([^:=]+):(.+)", re.DOTALL)
_ABOVE_ZERO = (
    "topk",
    "max_calls",
    "max_tokens",
    "max_tool_calls",
    "concurrency",
    "max_in_flight",
    "cache_mb",
    "call_timeout",
    "retrieve_timeout",
    "llm_body_mb",
    "retriever_body_mb",
)


PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "fast": {"joint": True, "synthesis": "needed", "prompts": "fast", "topk": 4},
    "paper-release": {
        "prompts": "paper",
        "structured": False,
        "request": {"temperature": 0.7},
        "reply_retries": 2,
        "max_calls": 100_000,
        "deadline": 3_600.0,
        "unknown": "allow",
        "no_passages": "aggregate",
        "plan_checks": False,
    },
}
"""Settings of each profile, which settings given individually override. `fast` makes the fewest calls, with the
shortest prompts and replies. `paper-release` has the values of the code that PyRAG's authors released (docs/papers.md
names its files); its limits only stop a program that never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings with their defaults, which are the paper's numbers if it states them."""

    # What all settings begin as that are not given (see `PROFILES`); read by `make_settings`.
    profile: Literal["paper", "fast", "paper-release"] = "paper"
    llm: str = "embedded"
    plan_llm: str | None = None  # the Plan agent's own model (paper: a coder model)
    decompose_llm: str | None = None
    answer_llm: str | None = None
    rewrite_llm: str | None = None  # the Rewrite agent's (OPERA: a smaller one)
    index: str | None = None  # an index folder; without one, the bundled corpus
    retriever: str | None = None  # URL of a /retrieve server, qdrant:…@URL, pgvector:…@URL, mcp+stdio:COMMAND
    embedder: str | None = None  # bundled, onnx:DIR, st:NAME or openai:MODEL@URL; else the index's own
    dense_weight: float = 0.5  # what the dense half of a hybrid index counts; the sparse half counts the rest
    where: str | None = None  # filter that all passages must pass, such as year >= 2020 and team = "ops"
    rerank: str | None = None  # reader (the embedded one), or a cross-encoder: onnx:DIR or st:NAME
    method: str = "pyrag"
    topk: int = 5
    boost_topk: int = 10  # what an unknown step is re-run with; 0 leaves the boost out
    # What is tried at an unknown step, in order; auto: the method's own (PyRAG: boost, OPERA: rewrite).
    recovery: Literal["auto", "none", "boost", "rewrite", "boost+rewrite", "rewrite+boost"] = "auto"
    joint: bool = False  # sub-queries and program in one model call
    # needed: the last answer is the final one where a synthesis would only repeat it
    synthesis: Literal["always", "needed"] = "always"
    whole_question: bool = False  # if the programs end without an answer, ask the whole question over one search
    repairs: int = 3
    reply_retries: int = 3  # further replies after a bad list of sub-queries or a syntax error
    plan_checks: bool = True  # check a program before it runs, and have its planner correct it once
    unknown: Literal["repair", "allow"] = "repair"
    no_passages: Literal["unknown", "aggregate"] = "unknown"  # what answer(query, []) does
    # Minimum evidence (0 to 1, by the embedded reader) for an answer to count as known; 0 disables the check. None: the
    # embedded engine's own threshold, and no check of a language model's answers.
    least_evidence: float | None = None
    rounds: int | None = None  # maximum rounds of an iterative method (iter-retgen, ircot, …); None: its own default
    parallel: bool = True
    structured: bool = True  # ask the model's server to enforce the form of replies (JSON schemas, patterns)
    stream: bool = True  # begin to retrieve and to run the program while it is still being written
    max_calls: int | None = None  # model calls a question; None: 20, and more with a long ladder (OPERA's: 44)
    max_tokens: int | None = None  # prompt and completion tokens a question
    price_in: float | None = None  # of a million prompt tokens, in any currency
    price_out: float | None = None  # of a million completion tokens
    max_cost: float | None = None  # maximum cost of a question, in that currency
    deadline: float | None = 120.0  # seconds a question
    # Seconds one model call may take, or pause in a stream; None: half the deadline, but at least 60, and
    # without a deadline 600.
    call_timeout: float | None = None
    retrieve_timeout: float = 10.0
    llm_body_mb: int = 64  # maximum megabytes of one reply of a model server, after decompression
    retriever_body_mb: int = 256  # the same of a retriever
    concurrency: int = 8  # questions at once
    max_in_flight: int = 256  # maximum model calls at once to an endpoint; fewer where the server refuses or times out
    proxy: str = "auto"  # URL of a proxy for model and retriever; auto: as the environment says; none: without
    ca_bundle: str | None = None  # a file or folder of certificates to trust in addition to the system's
    cache: str | bool = False  # a file of replies that were paid for; true: the user's cache folder
    cache_mb: int = 1024  # its maximum size, in MiB
    context_tokens: int | None = None  # the answer model's window; None: as its server tells
    tokenizer: str | None = None  # a tokenizer.json to count by; without one, four bytes are a token
    prompts: str | None = None  # a folder of prompt templates, or a packaged set: small, fast or paper
    experience: str | None = None  # an experience library that pyrag evolve made, for the method hera
    sandbox: Literal["kernel", "policy"] = "kernel"
    otel: bool | None = None  # export spans by OpenTelemetry; None: where the variables OTEL_* name a receiver
    tools: tuple[str, ...] = ()  # functions for programs: MODULE:NAME, sql:FILE, table:FOLDER
    max_tool_calls: int = 50  # calls of tools a question
    # Options of model requests, for all agents or for one role: see `pyrag.llm.request_options`.
    request: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "request", read_requests(self.request))
        if self.context_tokens is not None and self.context_tokens < _MIN_CONTEXT:
            raise ConfigError(f"context_tokens must be at least {_MIN_CONTEXT}, not {self.context_tokens}")
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and not value > 0:  # also refuses NaN
                raise ConfigError(f"{name} must be above 0, not {value}")
        if self.deadline is not None and not self.deadline > 0:
            raise ConfigError(f"deadline must be above 0 seconds, not {self.deadline}")
        self._check_prices()
        if self.rounds is not None and self.rounds <= 0:
            raise ConfigError(f"rounds must be above 0, not {self.rounds}")
        if min(self.repairs, self.reply_retries, self.boost_topk) < 0:
            raise ConfigError("repairs, reply_retries and boost_topk must not be negative")
        if self.topk > 100 or self.boost_topk > 100:
            raise ConfigError("topk and boost_topk must be at most 100")
        self._check_shares()
        if self.index is not None and self.retriever is not None:
            raise ConfigError("index and retriever exclude each other: keep one of them")

    def _check_shares(self) -> None:
        for name in ("dense_weight", "least_evidence"):
            if not 0 <= (getattr(self, name) or 0) <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {getattr(self, name)}")

    def _check_prices(self) -> None:
        for name in ("price_in", "price_out", "max_cost"):
            if not (getattr(self, name) or 0) >= 0:
                raise ConfigError(f"{name} must not be negative, but is {getattr(self, name)}")
        if self.max_cost is not None and self.price_in is None and self.price_out is None:
            raise ConfigError("max_cost needs prices: set price_in and price_out, of a million tokens each")

    @property
    def call_seconds(self) -> float:
        """Maximum seconds of one model call, or of one pause in a stream."""
        if self.call_timeout is not None:
            return self.call_timeout
        return _NO_DEADLINE_CALL if self.deadline is None else max(_MIN_CALL, self.deadline / 2)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{key}={value!r}' for key, value in public(self).items())})"


def public(settings: Settings) -> dict[str, Any]:
    """Return the settings for traces and reports, with addresses stripped of user, password and query."""
    return {**_public(settings), "request": _shown(settings.request)}


@lru_cache(maxsize=16)  # every question has the same
def _public(settings: Settings) -> dict[str, Any]:
    values = {name: getattr(settings, name) for name in Settings.__slots__}
    urls = {key: without_secrets(value) for key, value in values.items() if isinstance(value, str) and "://" in value}
    return values | urls | {"proxy": settings.proxy.rpartition("@")[2]}


def _shown(value: Any, key: str = "") -> Any:
    """Return a request option for traces and reports, without secrets in addresses or under telling names."""
    if isinstance(value, Mapping):
        return {name: _shown(option, name) for name, option in value.items()}
    if isinstance(value, list):
        return [_shown(item, key) for item in value]
    if not isinstance(value, str):
        return value
    return "…" if _SECRET_NAME.search(key) else without_secrets(value)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Load settings from file, environment and flags.

    Args:
        flags: Values by name, which take precedence over the others; None counts as missing.
        config: Settings file; by default the one that PYRAG_CONFIG names, else `pyrag.toml` in the current folder.
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
    """Join two layers of plain values. Naming one source of passages replaces the other; request options are joined.

    Args:
        lower: Values with lower precedence.
        upper: Values with higher precedence.
    """
    sources = {"index", "retriever"} if upper.keys() & {"index", "retriever"} else set()
    values = {key: value for key, value in lower.items() if key not in sources} | dict(upper)
    if "request" in lower and "request" in upper:
        values["request"] = merged(read_requests(lower["request"]), read_requests(upper["request"]))
    return values


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Return validated settings from plain values, on top of their profile's. Raises `ConfigError`."""
    known = _types()
    values = layered(PROFILES.get(str(values.get("profile")), {}), values)
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown setting {key!r}{nearest(key, known)}")
    return Settings(**{key: _checked(key, value, known[key]) for key, value in values.items()})


def _types() -> dict[str, Any]:
    hints = typing.get_type_hints(Settings)
    return {field.name: hints[field.name] for field in fields(Settings)}


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
        if key not in _types():
            raise ConfigError(f"{path}: unknown setting {key!r}{nearest(key, _types())}")
    for key in ("index", "prompts", "cache", "tokenizer", "experience", "ca_bundle"):
        if isinstance(values.get(key), str) and not (key == "prompts" and values[key] in PROMPT_SETS):
            values[key] = str(path.parent / Path(values[key]).expanduser())
    if "tools" in values:
        values["tools"] = [_tool_of_file(spec, path, chosen=chosen) for spec in _texts("tools", values["tools"])]
    return values


def split_tool(spec: str) -> tuple[str, str, str]:
    """Return name, scheme and rest of a tool's spec, `[NAME=]SCHEME:REST`; the name may be empty."""
    spec_match = _TOOL.fullmatch(spec)
    return (spec_match[1] or "", spec_match[2], spec_match[3]) if spec_match else ("", spec, "")


def _tool_of_file(spec: str, path: Path, *, chosen: bool) -> str:
    """Return a tool's spec from a settings file, with its path made relative to the file's folder.

    A file that was merely found in the current folder may not name a module, whose code would run.
    """
    name, scheme, rest = split_tool(spec)
    if scheme in DATA_TOOLS:
        return f"{f'{name}=' if name else ''}{scheme}:{path.parent / Path(rest).expanduser()}"
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
        if key not in _types():
            names = [*(ENVIRONMENT_PREFIX + name.upper() for name in _types()), *sorted(_OTHER_VARIABLES)]
            raise ConfigError(f"unknown environment variable {variable}{nearest(variable, names)}")
        values[key] = text
    return values


def _checked(key: str, value: Any, wanted: Any) -> Any:
    """Return a value of the wanted type; text (from the environment) is converted."""
    if key == "request":
        return read_requests(value)
    if key == "tools":
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
    """Return a list of texts; one text, from the environment, holds them separated by commas."""
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
