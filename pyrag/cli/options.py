"""Options that several commands share. Defaults are those of `pyrag.Settings`: an option left out is None."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Llm = Annotated[
    str | None,
    typer.Option(
        help="Engine: embedded, openai:MODEL@URL, vllm:MODEL, transformers:MODEL, scripted:FILE, replay:FILE.",
        show_default=False,
    ),
]
PlanLlm = Annotated[str | None, typer.Option(help="Another engine for the Plan agent, such as a coder model.")]
RewriteLlm = Annotated[str | None, typer.Option(help="Another engine for the Rewrite agent, such as a small model.")]
Recovery = Annotated[
    str | None, typer.Option(help="For unknown steps: none, boost, rewrite, boost+rewrite (the method's own).")
]
Index = Annotated[str | None, typer.Option(help="Index folder (see pyrag index); the bundled corpus without one.")]
RetrieverUrl = Annotated[str | None, typer.Option("--retriever", help="URL of a /retrieve server.")]
TopK = Annotated[int | None, typer.Option(help="Passages a sub-query (5).")]
Method = Annotated[str | None, typer.Option(help="How to answer: pyrag, opera, vanilla, … (pyrag).")]
Deadline = Annotated[float | None, typer.Option(help="Seconds a question may take (120).")]
CallTimeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds one model call may take, or a stream may pause (half the deadline, 60 or more).",
        show_default=False,
    ),
]
Joint = Annotated[bool | None, typer.Option("--joint", help="Sub-queries and program in one model call.")]
Stream = Annotated[bool | None, typer.Option("--stream/--no-stream", help="Run programs while they are being written.")]
MaxCalls = Annotated[int | None, typer.Option(help="Model calls a question may make (20; opera: 42).")]
SandboxMode = Annotated[str | None, typer.Option(help="kernel (default), or policy where the kernel wall is missing.")]
Prompts = Annotated[str | None, typer.Option(help="Folder of prompt templates to use instead of the package's.")]
Experience = Annotated[
    str | None, typer.Option(help="Experience library of pyrag evolve, for --method hera.", show_default=False)
]
Concurrency = Annotated[int | None, typer.Option(help="Questions at once (8).")]
Cache = Annotated[
    bool | None, typer.Option("--cache/--no-cache", help="Keep replies of models on disk, and use those kept.")
]
MaxCost = Annotated[float | None, typer.Option(help="Money a question may cost; needs the settings price_in/_out.")]
Request = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[ROLE.]KEY=VALUE",
        help="Option of model requests: temperature, max_tokens, seed, extra_body.NAME; ROLE is plan, decompose, "
        "answer or rewrite. May be repeated.",
        show_default=False,
    ),
]
Embedder = Annotated[str | None, typer.Option(help="Another engine for the model that the index names.")]
Rerank = Annotated[str | None, typer.Option(help="reader, or a cross-encoder: onnx:DIR or st:NAME.")]
LeastEvidence = Annotated[
    float | None,
    typer.Option(
        help="Evidence (0 to 1) below which an answer counts as unknown; 0 checks nothing.", show_default=False
    ),
]
Config = Annotated[Path | None, typer.Option(help="Settings file (./pyrag.toml if there is one).")]
