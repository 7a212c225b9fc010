"""All settings with their defaults, and the profiles that set several of them at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError
from pyrag.llm.request_options import read_requests
from pyrag.settings.declaration import Declaration, declarations_of, described, setting

_SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
_MIN_CONTEXT = 512  # tokens: the Answer agent's own prompt must fit
_MIN_CALL = 60.0  # seconds
_NO_DEADLINE_CALL = 600.0  # seconds
_ABOVE_ZERO = (
    "topk", "max_calls", "max_tokens", "max_tool_calls", "concurrency", "max_in_flight", "cache_mb", "call_timeout",
    "retrieve_timeout", "llm_body_mb", "retriever_body_mb",
)  # fmt: skip

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "fast": {"joint": True, "synthesis": "needed", "prompts": "fast", "topk": 4},
    "corpus": {"corpus": True, "max_calls": 2_000, "deadline": 900.0},
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
shortest prompts and replies. `corpus` has room to ask many documents one question each. `paper-release` has the values
of the code that PyRAG's authors released (docs/papers.md names its files); its limits only stop a program that never
ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings with their defaults. These are the paper's numbers if it states them."""

    profile: Literal["paper", "fast", "corpus", "paper-release"] = setting(
        "paper",
        "Profile: paper, fast (few calls, short prompts), corpus (questions over all documents) or paper-release; "
        "other options override it.",
    )
    llm: str = setting(
        "embedded",
        "Engine that writes programs and reads passages: embedded (rules and a small reader, no language model), "
        "openai:MODEL@URL (a server), vllm:MODEL, transformers:MODEL, scripted:FILE or replay:FILE.",
    )
    plan_llm: str | None = setting(
        None, "Engine of the Plan agent, which writes programs, such as a coder model.", default_text="same as --llm"
    )
    decompose_llm: str | None = setting(
        None, "Engine of the Decompose agent, which splits questions.", default_text="same as --llm"
    )
    answer_llm: str | None = setting(
        None, "Engine of the Answer agent, which reads passages.", default_text="same as --llm"
    )
    rewrite_llm: str | None = setting(
        None,
        "Engine of the Rewrite agent, which rewords searches, such as a small model.",
        default_text="same as --llm",
    )
    index: str | None = setting(
        None, "Folder of the index to search, built by pyrag index.", default_text="the bundled corpus"
    )
    retriever: str | None = setting(
        None,
        "Search instead of an index: URL of a /retrieve server, qdrant:COLLECTION@URL, pgvector:TABLE@URL, "
        "mcp+stdio:COMMAND or mcp+http:URL.",
    )
    sources: tuple[str, ...] = setting(
        (),
        "Several sources to search as one, each as [NAME=]FOLDER or [NAME=]URL, optionally followed by "
        "#weight=2 or #deadline=1.5. Several --index and --retriever do the same.",
    )
    embedder: str | None = setting(
        None, "Embedder of queries: bundled, onnx:DIR, st:NAME or openai:MODEL@URL.", default_text="the index's own"
    )
    dense_weight: float = setting(
        0.5, "Weight of the vectors of a hybrid index: 0 searches words only, 1 vectors only."
    )
    where: str | None = setting(
        None, "Search only passages whose metadata match, such as 'year >= 2020 and team = \"ops\"'."
    )
    rerank: str | None = setting(None, "Rerank passages with: reader, or a cross-encoder as onnx:DIR or st:NAME.")
    method: str = setting("pyrag", "Method that answers: pyrag (programs), vanilla (one search), opera, hera, ….")
    topk: int = setting(5, "Passages to retrieve for each sub-query (1 to 100).")
    boost_topk: int = setting(
        10, "Passages to retrieve when a step without an answer is tried again; 0 turns this off."
    )
    recovery: Literal["auto", "none", "boost", "rewrite", "boost+rewrite", "rewrite+boost"] = setting(
        "auto",
        "What to try for a step without an answer: none, boost, rewrite, boost+rewrite or rewrite+boost.",
        default_text="the method's own",
    )
    joint: bool = setting(False, "Write sub-queries and program in one model call.", default_text="off")
    corpus: bool = setting(
        False,
        "Let a model's programs list, count and ask all documents, not only search.",
        default_text="off",
    )
    synthesis: Literal["always", "needed"] = setting(
        "always", "Compose the final answer in one more call: always, or only if needed."
    )
    whole_question: bool = setting(
        False,
        "If the program has no answer, search for the whole question and answer it.",
        default_text="off",
    )
    repairs: int = setting(3, "How often the model may repair a program that failed.")
    reply_retries: int = setting(3, "How often to ask again after a bad list of sub-queries or a syntax error.")
    plan_checks: bool = setting(True, "Check a program before it runs, and let the model correct it once.")
    unknown: Literal["repair", "allow"] = setting(
        "repair", "What to do with a query that contains an unknown answer: repair the program, or allow the query."
    )
    no_passages: Literal["unknown", "aggregate"] = setting(
        "unknown", "What answer(query, []) returns: unknown, or an answer without documents (aggregate)."
    )
    least_evidence: float | None = setting(
        None,
        "Minimum evidence (0 to 1) for an answer to count as known; 0 disables the check.",
        default_text="the engine's own",
    )
    rounds: int | None = setting(
        None, "Maximum rounds of an iterative method (iter-retgen, ircot, …).", default_text="the method's own"
    )
    parallel: bool = setting(True, "Run independent steps of a program at the same time.")
    structured: bool = setting(True, "Ask the model's server to enforce the form of replies (JSON schemas, patterns).")
    stream: bool = setting(True, "Run programs while they are being written.")
    max_calls: int | None = setting(None, "Limit of model calls for a question.", default_text="20; for opera 44")
    max_tokens: int | None = setting(
        None, "Limit of prompt and completion tokens for a question.", default_text="no limit"
    )
    price_in: float | None = setting(None, "Price of a million prompt tokens, in any currency.")
    price_out: float | None = setting(None, "Price of a million completion tokens, in the same currency.")
    max_cost: float | None = setting(None, "Cost limit of a question; requires the settings price_in and price_out.")
    deadline: float | None = setting(120.0, "Time limit of a question in seconds.")
    call_timeout: float | None = setting(
        None,
        "Time limit of one model call, or of a pause in its stream, in seconds.",
        default_text="half the deadline, at least 60",
    )
    retrieve_timeout: float = setting(10.0, "Time limit of one search in seconds.")
    llm_body_mb: int = setting(64, "Maximum size of a model server's reply in megabytes, after decompression.")
    retriever_body_mb: int = setting(256, "Maximum size of a retriever's reply in megabytes, after decompression.")
    concurrency: int = setting(8, "Questions to answer at the same time.")
    max_in_flight: int = setting(
        256, "Maximum number of model calls to a server at the same time; lowered while it refuses or times out."
    )
    proxy: str = setting(
        "auto", "URL of a proxy for models and retrievers; auto uses the environment's, none disables proxies."
    )
    ca_bundle: str | None = setting(None, "File or folder of certificates to trust in addition to the system's.")
    cache: str | bool = setting(
        False,
        "Store model replies on disk and reuse them. In a settings file, it may also be the path of the cache.",
        default_text="off",
    )
    cache_mb: int = setting(1024, "Maximum size of the stored replies in MiB.")
    context_tokens: int | None = setting(
        None, "Context window of the answer model in tokens.", default_text="the server's report"
    )
    tokenizer: str | None = setting(
        None, "File tokenizer.json to count tokens with.", default_text="one token per four bytes"
    )
    prompts: str | None = setting(
        None,
        "Folder of prompt templates, or a packaged set: small, fast or paper.",
        default_text="the default templates",
    )
    experience: str | None = setting(None, "Experience library of pyrag evolve, for --method hera.")
    sandbox: Literal["kernel", "policy"] = setting(
        "kernel", "Sandbox mode: kernel, or policy if the system lacks kernel isolation."
    )
    otel: bool | None = setting(
        None, "Export spans by OpenTelemetry (extra otel).", default_text="as the OTEL_* variables say"
    )
    tools: tuple[str, ...] = setting(
        (),
        "Function that programs may call: MODULE:NAME, sql:FILE for a database or table:FOLDER for CSV files. "
        "Repeatable.",
        metavar="[NAME=]SPEC",
    )
    max_tool_calls: int = setting(50, "Limit of tool calls for a question.")
    flow: Literal["auto", "strict", "confirm", "allow"] = setting(
        "auto",
        "What to do if retrieved text would decide a tool call with effects: strict refuses it, confirm asks, allow "
        "makes it.",
        default_text="confirm if somebody can be asked, else strict",
    )
    search_effects: bool = setting(
        False, "Treat searches as calls with effects, for example searches of the web.", default_text="off"
    )
    request: Mapping[str, Any] = field(
        default_factory=dict,
        hash=False,
        metadata=described(
            "Parameter of model requests, for all agents (temperature=0.2) or for one (plan.max_tokens=4096); KEY is "
            "temperature, max_tokens, seed or extra_body.NAME. Repeatable.",
            metavar="[ROLE.]KEY=VALUE",
        ),
    )

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
        if sum((self.index is not None, self.retriever is not None, bool(self.sources))) > 1:
            raise ConfigError(
                "index, retriever and sources exclude each other: set only one, such as sources with all of them"
            )

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
    """Return the settings for traces and reports, with user, password and query removed from addresses."""
    return {**_public(settings), "request": _shown(settings.request)}


@lru_cache(maxsize=16)  # every question has the same
def _public(settings: Settings) -> dict[str, Any]:
    values = {name: getattr(settings, name) for name in Settings.__slots__}
    values["sources"] = tuple(map(without_secrets, settings.sources))
    urls = {key: without_secrets(value) for key, value in values.items() if isinstance(value, str) and "://" in value}
    return values | urls | {"proxy": settings.proxy.rpartition("@")[2]}


def _shown(value: Any, key: str = "") -> Any:
    """Return a request option for traces and reports, without secrets in addresses or in fields named like secrets."""
    if isinstance(value, Mapping):
        return {name: _shown(option, name) for name, option in value.items()}
    if isinstance(value, list):
        return [_shown(item, key) for item in value]
    if not isinstance(value, str):
        return value
    return "…" if _SECRET_NAME.search(key) else without_secrets(value)


@cache
def declarations() -> Mapping[str, Declaration]:
    """Return the declarations of all settings, by name and in order."""
    return declarations_of(Settings)
