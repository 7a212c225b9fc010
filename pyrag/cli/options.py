"""Options that several commands share, each declared once: it has the name of its setting, and shows its default.

A command's parameters are named like the settings that they set, so that `chosen` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from pyrag.settings import Settings, load_settings

_DEFAULTS = {one.name: one.default for one in fields(Settings)}


def chosen(given: Mapping[str, Any], **instead: Any) -> Settings:
    """Return the settings with what the command line gave; an option that is None was left out.

    Args:
        given: A command's parameters by name, as in `locals()`; those that are named like no setting are ignored.
        instead: Settings that take the place of parameters of the same name.

    Raises:
        ConfigError: A value, a variable or the file `given["config"]` is wrong.
    """
    flags = {name: value for name, value in {**given, **instead}.items() if name in _DEFAULTS}
    return load_settings(flags, config=given["config"])


def _setting(name: str, text: str, *flags: str, shown: str = "", metavar: str | None = None) -> Any:
    """Declare the option of a setting; `shown` describes a default that depends on other settings."""
    default = _DEFAULTS[name]
    text_of_default = shown or (
        "" if default in (None, False, MISSING, ()) else "on" if default is True else str(default)
    )
    return typer.Option(*flags, help=text, show_default=text_of_default or False, metavar=metavar)


Llm = Annotated[
    str | None,
    _setting(
        "llm",
        "Engine that writes and answers: embedded, openai:MODEL@URL, vllm:MODEL, transformers:MODEL, scripted:FILE or "
        "replay:FILE.",
    ),
]
PlanLlm = Annotated[
    str | None, _setting("plan_llm", "Engine of the Plan agent, such as a coder model.", shown="that of --llm")
]
DecomposeLlm = Annotated[str | None, _setting("decompose_llm", "Engine of the Decompose agent.", shown="that of --llm")]
AnswerLlm = Annotated[str | None, _setting("answer_llm", "Engine of the Answer agent.", shown="that of --llm")]
RewriteLlm = Annotated[
    str | None, _setting("rewrite_llm", "Engine of the Rewrite agent, such as a small model.", shown="that of --llm")
]
Recovery = Annotated[
    str | None,
    _setting("recovery", "Recover unknown steps by: none, boost, rewrite, boost+rewrite.", shown="the method's own"),
]
Index = Annotated[
    str | None, _setting("index", "Folder of the index to search (see pyrag index).", shown="the bundled corpus")
]
RetrieverUrl = Annotated[
    str | None,
    _setting(
        "retriever",
        "Search instead of an index: URL of a /retrieve server, mcp+stdio:COMMAND or mcp+http:URL.",
        "--retriever",
    ),
]
Where = Annotated[
    str | None,
    _setting("where", "Filter of passages by their metadata, such as 'year >= 2020 and team = \"ops\"'."),
]
DenseWeight = Annotated[
    float | None,
    _setting("dense_weight", "Weight of the vectors of a hybrid index: 0 searches words only, 1 vectors only."),
]
TopK = Annotated[int | None, _setting("topk", "Passages to retrieve for each sub-query (1 to 100).")]
Method = Annotated[str | None, _setting("method", "Method that answers: pyrag, opera, hera, vanilla, ….")]
Deadline = Annotated[float | None, _setting("deadline", "Time limit of a question in seconds.")]
CallTimeout = Annotated[
    float | None,
    _setting(
        "call_timeout",
        "Time limit of one model call, or of a pause in its stream, in seconds.",
        shown="half the deadline, at least 60",
    ),
]
Profile = Annotated[
    str | None,
    _setting("profile", "Profile: paper, fast (few calls, short prompts) or paper-release; other options override it."),
]
Joint = Annotated[
    bool | None,
    _setting("joint", "Write sub-queries and program in one model call.", "--joint/--no-joint", shown="off"),
]
Synthesis = Annotated[
    str | None,
    _setting("synthesis", "Compose the final answer in a call of its own: always, or needed (else the last answer)."),
]
WholeQuestion = Annotated[
    bool | None,
    _setting(
        "whole_question",
        "If the programs end without an answer, ask the whole question over one search.",
        "--whole-question/--no-whole-question",
        shown="off",
    ),
]
Stream = Annotated[
    bool | None, _setting("stream", "Run programs while they are being written.", "--stream/--no-stream")
]
MaxCalls = Annotated[
    int | None, _setting("max_calls", "Limit of model calls for a question.", shown="20; for opera 44")
]
SandboxMode = Annotated[
    str | None, _setting("sandbox", "Sandbox mode: kernel, or policy where the system lacks kernel isolation.")
]
Prompts = Annotated[
    str | None,
    _setting(
        "prompts", "Folder of prompt templates, or a packaged set: small, fast or paper.", shown="the default templates"
    ),
]
Experience = Annotated[str | None, _setting("experience", "Experience library of pyrag evolve, for --method hera.")]
Otel = Annotated[
    bool | None,
    _setting(
        "otel", "Export spans by OpenTelemetry (extra otel).", "--otel/--no-otel", shown="as the OTEL_* variables say"
    ),
]
Concurrency = Annotated[int | None, _setting("concurrency", "Questions to answer at the same time.")]
Cache = Annotated[
    bool | None, _setting("cache", "Store model replies on disk and reuse them.", "--cache/--no-cache", shown="off")
]
MaxCost = Annotated[
    float | None, _setting("max_cost", "Cost limit of a question; requires the settings price_in and price_out.")
]
Request = Annotated[
    list[str] | None,
    _setting(
        "request",
        "Option of model requests: temperature, max_tokens, seed or extra_body.NAME; ROLE is plan, decompose, answer "
        "or rewrite. Repeatable.",
        metavar="[ROLE.]KEY=VALUE",
    ),
]
Tools = Annotated[
    list[str] | None,
    _setting(
        "tools",
        "Function that programs may call: MODULE:NAME, sql:FILE for a database or table:FOLDER for CSV files. "
        "Repeatable.",
        metavar="[NAME=]SPEC",
    ),
]
Embedder = Annotated[
    str | None,
    _setting(
        "embedder", "Embedder of queries: bundled, onnx:DIR, st:NAME or openai:MODEL@URL.", shown="the index's own"
    ),
]
Rerank = Annotated[
    str | None, _setting("rerank", "Rerank passages with: reader, or a cross-encoder as onnx:DIR or st:NAME.")
]
LeastEvidence = Annotated[
    float | None,
    _setting(
        "least_evidence",
        "Minimum evidence (0 to 1) for an answer to count as known; 0 disables the check.",
        shown="the engine's own",
    ),
]
Config = Annotated[
    Path | None, typer.Option(help="Settings file.", show_default="pyrag.toml of the folder, if there is one")
]


# Of the commands that serve questions; no settings.
ApiKeyFile = Annotated[Path | None, typer.Option(help="File of API keys, one a line: KEY [INDEX,…].")]
AllowAnonymous = Annotated[bool, typer.Option("--allow-anonymous", help="Serve other hosts without keys.")]
TraceFile = Annotated[Path | None, typer.Option("--traces", help="SQLite file of traces.", show_default="in memory")]
