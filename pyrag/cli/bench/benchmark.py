"""`pyrag bench`: prepares the question sets, obtains the missing answers, and writes the summary."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from pyrag._io.files import write_json
from pyrag.agents.engine import can_write
from pyrag.cli.bench.ask import LocalAsk, PooledAsk
from pyrag.cli.bench.view import BenchProgress, export, print_summary
from pyrag.cli.bench.workers import process_pool, ray_pool
from pyrag.cli.output import tell
from pyrag.errors import DataError, UsageError
from pyrag.evaluation.datasets.suite import (
    PassageOptions,
    QuestionSet,
    Source,
    build_index,
    choose_source,
    default_sets,
    gold_passages,
    open_set,
)
from pyrag.evaluation.gold_passages import GoldPassages, KnownBy, recognise
from pyrag.evaluation.reports.summary import BenchSummary, summarise
from pyrag.evaluation.runs.batch import QuestionJob, run_jobs, unwritable
from pyrag.evaluation.runs.folder import SUMMARY, RunWriter, open_run
from pyrag.evaluation.runs.journal import journal_path
from pyrag.evaluation.runs.provenance import session
from pyrag.evaluation.scoring import score
from pyrag.methods.registry import check_writer, get_method, method_names
from pyrag.runtime.engines import open_engines, retriever_of
from pyrag.settings import Settings, public
from pyrag.trace.model import Trace
from pyrag.trace.words import counted

# Methods that are compared by default: those that need no model, or PyRAG and the paper's baselines.
EMBEDDED_METHODS = ("pyrag", "decompose-only", "iter-retgen", "adaptive", "vanilla")
MODEL_METHODS = ("pyrag", "iter-retgen", "ircot", "self-ask", "vanilla", "cot", "direct")
# Settings that do not change the answers, or that differ by set and method.
_OUTSIDE = (
    "sources", "concurrency", "otel", "max_in_flight", "cache_mb", "llm_body_mb", "retriever_body_mb", "proxy",
    "ca_bundle", "method", "index", "retriever",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """Options of `pyrag bench`; `settings` holds the options that it shares with `pyrag ask`."""

    settings: Settings
    sets: Sequence[str] = ()
    methods: Sequence[str] = ()
    limit: int | None = None
    seed: int = 0
    data: Path | None = None
    split: str = ""
    out: Path | None = None
    corpora: Sequence[Path] = ()
    index_dir: Path | None = None
    workers: int = 0
    ray: str | None = None
    resume_steps: bool = False
    as_json: bool = False
    csv: Path | None = None
    trec: Path | None = None


@dataclass(frozen=True, slots=True)
class PreparedSet:
    """Question set with the source of its passages."""

    questions: QuestionSet
    source: Source


def run(request: BenchRequest) -> None:
    """Answer the questions without a result. Exit with code 3 if services failed for some of them, or 1 if data did."""
    usual = MODEL_METHODS if can_write(request.settings.llm) else EMBEDDED_METHODS
    methods = list(request.methods) or [name for name in usual if name in method_names()]
    engines = (request.settings.llm, request.settings.answer_llm or request.settings.llm)
    for name in methods:
        get_method(name)
        check_writer(get_method(name), can_write=any(map(can_write, engines)))
    out = request.out or _new_folder(Path("runs") / time.strftime("%Y%m%d-%H%M%S"))
    sets = _open_sets(request, out)
    about = session(
        concurrency=request.settings.concurrency,
        workers=request.workers,
        files={item.questions.name: str(item.questions.path) for item in sets},
        passages={item.questions.name: item.source.name for item in sets},
    )
    with open_run(out, _identity(request, sets, methods), about) as writer:
        _tell_of_other_code(writer)
        _build_indexes(request, sets)
        asyncio.run(_answer_all(request, sets, methods, writer))
        expected = sum(len(item.questions.questions) for item in sets) * len(methods)
        summary = summarise(writer.rows.values(), [item.questions.name for item in sets], methods, expected)
        write_json(out / SUMMARY, summary)
    print_summary(summary, out, as_json=request.as_json)
    if request.csv or request.trec:
        export(out, csv=request.csv, trec=request.trec)
    if summary.failed:
        _leave(summary, writer)


def _new_folder(folder: Path) -> Path:
    """Return a folder, or one of the same name with a number if a run of the same second has it."""
    folders = (folder.with_name(f"{folder.name}-{number}") if number > 1 else folder for number in count(1))
    return next(each for each in folders if not each.exists())


def _open_sets(request: BenchRequest, out: Path) -> list[PreparedSet]:
    settings = request.settings
    cache = request.index_dir or out.resolve().parent / "indexes"
    index = None if settings.index is None else Path(settings.index)
    options = PassageOptions(tuple(request.corpora), index, settings.retriever, cache, settings.sources)
    sets = []
    for name in request.sets or default_sets(request.data):
        questions = open_set(name, request.data, split=request.split, limit=request.limit, seed=request.seed)
        sets.append(PreparedSet(questions, choose_source(questions, options)))
        if unused := sets[-1].source.unused:
            tell(f"{name} is asked over its own corpus, {questions.corpus}: {unused} is for sets without one")
    return sets


def _build_indexes(request: BenchRequest, sets: Sequence[PreparedSet]) -> None:
    """Build missing indexes. Since this may take long, check first that the engines can be opened."""
    if any(prepared.source.index and not prepared.source.index.exists() for prepared in sets):
        asyncio.run(_check_engines(request.settings))
    for prepared in sets:
        build_index(prepared.source, lambda corpus, folder: tell(f"building an index of {corpus} in {folder} …"))


async def _check_engines(settings: Settings) -> None:
    """Raise `PyRAGError` if the settings name an engine, prompts or tools that cannot be opened."""
    engines = open_engines(replace(settings, index=None, retriever=None, sources=()))
    await engines.aclose()


async def _gold(prepared: PreparedSet, settings: Settings) -> GoldPassages:
    """Return the gold passages of a set, with a remark if the retriever does not know their ids."""
    passages = gold_passages(prepared.questions, prepared.source)
    if prepared.source.corpora and (passages or prepared.questions.corpus or prepared.questions.bundled):
        return GoldPassages(passages)
    retriever = retriever_of(settings)
    try:
        gold = await recognise(prepared.questions.questions, passages, retriever)
    finally:
        await retriever.aclose()
    source, name = prepared.source.name, prepared.questions.name
    if gold.known_by is KnownBy.TEXT:
        tell(f"{source} has ids of its own: gold passages of {name} are known by title and text")
    elif gold.known_by is KnownBy.NOTHING:
        tell(
            f"{source} does not know the gold passages of {name}: recall is left out, and causes of wrong answers are "
            "derived from gold answers in the passages"
        )
    return gold


def _identity(request: BenchRequest, sets: Sequence[PreparedSet], methods: Sequence[str]) -> dict[str, Any]:
    """Return everything that two sessions of one run must agree on."""
    # Without tools, their settings are left out, so that runs of versions that had none can continue.
    outside = _OUTSIDE if request.settings.tools else (*_OUTSIDE, "tools", "max_tool_calls", "flow")
    outside = outside if request.settings.search_effects else (*outside, "search_effects")
    settings = {key: value for key, value in public(request.settings).items() if key not in outside}
    return {
        "sets": [item.questions.name for item in sets],
        "methods": list(methods),
        "limit": request.limit,
        "seed": request.seed if request.limit else None,
        "split": request.split,
        "questions": {item.questions.name: item.questions.sha256 for item in sets},
        "passages": {item.questions.name: item.source.identity or item.source.name for item in sets},
        "settings": settings,
    }


async def _answer_all(
    request: BenchRequest, sets: Sequence[PreparedSet], methods: Sequence[str], writer: RunWriter
) -> None:
    """Answer set by set, since engines belong to one index, and within a set, method by method."""
    todo = [(prepared, _open_jobs(prepared.questions, methods, writer)) for prepared in sets]
    if request.resume_steps:
        _discard_others(writer.folder, [job for _, jobs in todo for job in jobs])
    with BenchProgress(writer.rows.values(), sum(len(jobs) for _, jobs in todo)) as progress:
        for prepared, jobs in todo:
            if jobs:
                settings = replace(request.settings, **prepared.source.overrides)
                await _answer_set(prepared, jobs, settings, request, writer, progress)


def _open_jobs(questions: QuestionSet, methods: Sequence[str], writer: RunWriter) -> list[QuestionJob]:
    jobs = [QuestionJob(questions.name, method, question) for method in methods for question in questions.questions]
    return [job for job in jobs if (row := writer.rows.get(job.key)) is None or row.is_transient]


def _discard_others(run: Path, jobs: Sequence[QuestionJob]) -> None:
    """Delete journals of answered questions. They remain if a process is killed after it stores a result."""
    open_ones = {journal_path(run, *job.key) for job in jobs}
    for path in run.glob("journal/*"):
        if path not in open_ones:
            path.unlink()


async def _answer_set(
    prepared: PreparedSet,
    jobs: list[QuestionJob],
    settings: Settings,
    request: BenchRequest,
    writer: RunWriter,
    progress: BenchProgress,
) -> None:
    journals = writer.folder if request.resume_steps else None
    if journals:
        (journals / "journal").mkdir(exist_ok=True)

    gold = await _gold(prepared, settings)

    def write(job: QuestionJob, trace: Trace) -> None:
        question = gold.as_retrieved(job.question, trace)
        row = score(job.set, job.method, question, trace, gold.titles)
        progress.add(writer.write(row, trace))

    def done(job: QuestionJob, trace: Trace) -> None:
        try:
            write(job, trace)
        except DataError as error:
            write(job, unwritable(job, error))
        if journals:
            journal_path(journals, *job.key).unlink(missing_ok=True)

    async with _open_ask(settings, journals, request) as ask:
        await run_jobs(jobs, ask, done, concurrency=settings.concurrency)


def _open_ask(settings: Settings, journals: Path | None, request: BenchRequest) -> LocalAsk | PooledAsk:
    if request.ray:
        if journals:
            raise UsageError("--resume-steps keeps files of this machine: leave it out with --ray")
        return ray_pool(settings, request.ray, request.workers or 2)
    return process_pool(settings, journals, request.workers) if request.workers else LocalAsk(settings, journals)


def _tell_of_other_code(writer: RunWriter) -> None:
    """Warn if the run has results of another commit."""
    now = writer.sessions[-1].get("commit")
    others = {str(session.get("commit")) for session in writer.sessions if session.get("commit") != now}
    if others and writer.rows:
        tell(f"this run has results of other code (commit {', '.join(sorted(others))}); this is {now}")


def _leave(summary: BenchSummary, writer: RunWriter) -> None:
    errors = [row.error for row in writer.rows.values() if row.is_transient and row.error]
    tell(
        f"{summary.failed} of {counted(summary.questions, 'question')} failed, "
        f"the last one with: {errors[-1].message}; "
        f"run the same command with --out {writer.folder} to ask them again"
    )
    sys.exit(max(error.exit_code for error in errors))
