"""The recipe of docs/small-model.md: train SmolLM2-135M-Instruct for every agent, and measure it, stage by stage.

    python -m benchmarks.small_model [STAGE …] [--trained [FOLDER]] [--gpu] [--data FOLDER] [--out FOLDER] [--limit N]

Each stage is a list of `pyrag` commands. A command whose product exists is left out, and one that was stopped goes on,
so the same line resumes. `--trained` takes the adapters of rl/adapters/small instead of training them, `--gpu`
fine-tunes on a GPU, on twenty times as many tokens, `--dry-run` prints the commands. Parameters of training stand in
rl/configs/small-*.yaml. Needs the environment of `make train-env`; `make small-model` runs it. Without a STAGE all of
them run, and a report is written.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from benchmarks.planner_figures import planner_table
from benchmarks.prefix_cache import prefix_cache_table, prefix_caches, record_prefix_caches
from benchmarks.real_model import served
from benchmarks.small_model_bench import ROWS, judge, measure, verdicts
from benchmarks.small_model_rows import MERGED, Command, Recipe, Step, data
from pyrag.cli.main import guarded
from pyrag.errors import UsageError, nearest
from pyrag.evaluation.runs.folder import SUMMARY

MODEL = Path("runs/models/smollm2-135m-instruct")
ADAPTERS = Path("rl/adapters/small")


def _training(
    recipe: Recipe, name: str, agent: str, config: str, *more: str, evaluated: bool = True
) -> Iterator[Command]:
    run, rows = recipe.out / name, recipe.rows / f"{name}.parquet"
    line = ["train", "--agent", agent, "--config", f"rl/configs/{config}.yaml", "--model", str(MODEL)]
    line += ["--data", str(rows), "--out", str(run)]
    line += ["--eval-data", str(recipe.rows / f"{name}-eval.parquet")] if evaluated else []
    yield Command((*line, *more), run / MERGED)
    yield Command(("train", "export", str(run), "--merged"), run / MERGED)


def _on_gpu(recipe: Recipe, name: str, agent: str, *settings: str) -> Iterator[Command]:
    """The commands that fine-tune from the start, on a GPU; a mixture of rows has no held-out part."""
    more = ("--algorithm", "sft", *_set(*settings))
    yield from _training(recipe, name, agent, "small-gpu", *more, evaluated=False)


def _set(*settings: str) -> list[str]:
    return [part for one in settings for part in ("--set", one)]


def sft_plan(recipe: Recipe) -> Iterator[Command]:
    if recipe.gpu:
        short = ("prompt_tokens=256", "response_tokens=256", "batch_size=64", "micro_batch_size=64")
        yield from _on_gpu(recipe, "sft-plan", "plan", "learning_rate=1e-3", "max_steps=580", *short)
    else:
        if not (recipe.out / "sft-plan" / MERGED).exists():
            yield from _training(recipe, "sft-plan-start", "plan", "small-planner", "--algorithm", "sft")
        more = _going_on(recipe, "sft-plan-start", "max_steps=140", "learning_rate=6e-4")
        yield from _training(recipe, "sft-plan", "plan", "small-planner", *more)
    # Decompose and Plan of `--profile paper` in one adapter, on the CPU: they know the programs already.
    more = _going_on(recipe, "sft-plan", "max_steps=160", "learning_rate=6e-4")
    yield from _training(recipe, "sft-paper", "plan", "small-planner", *more, evaluated=False)


def sft_answer(recipe: Recipe) -> Iterator[Command]:
    if recipe.gpu:
        yield from _on_gpu(recipe, "sft-answer", "answer", "max_steps=690")
        yield from _on_gpu(recipe, "sft-rag", "answer", "max_steps=430", "prompt_tokens=1100")
        return
    yield from _training(recipe, "sft-answer", "answer", "small-answer", "--algorithm", "sft")
    # It goes on from the reader; a whole question stands over five passages.
    more = _going_on(recipe, "sft-answer", "prompt_tokens=640", "max_steps=45", "learning_rate=4e-4")
    yield from _training(recipe, "sft-rag", "answer", "small-answer", *more)


def _going_on(recipe: Recipe, start: str, *settings: str) -> list[str]:
    """The options of supervised training that goes on from another run's adapter."""
    return ["--algorithm", "sft", "--adapter", str(recipe.out / start / "adapter"), *_set(*settings)]


def _rewarded(recipe: Recipe, name: str, agent: str, start: str, *settings: str, **frozen: str) -> Iterator[Command]:
    """The commands that train on from a supervised adapter, other agents being served."""
    more = ["--adapter", str(recipe.out / start / "adapter")]
    more += _set(*settings, *(f"runtime.{setting}={engine}" for setting, engine in frozen.items()))
    yield from _training(recipe, name, agent, "small-rl", *more)


# An agent that a GPU has fine-tuned gets worse at the configuration's learning rate.
GENTLE = ("response_tokens=32", "learning_rate=5e-5", "max_steps=28", "eval_every=14", "save_every=14")


def rl_answer(recipe: Recipe) -> Iterator[Command]:
    yield from _rewarded(recipe, "rl-answer", "answer", "sft-answer", *(GENTLE if recipe.gpu else ()))
    # Whole passages; 1e-4 is what was run: with twice that the Answer agent of the GPU got worse.
    whole = ("prompt_tokens=1100", "response_tokens=32", "learning_rate=1e-4", "max_steps=28")
    yield from _rewarded(recipe, "rl-rag", "answer", "sft-rag", *whole, "eval_every=14", "save_every=14")


# Programs are ten times as long as answers: 64 at once fill 24 GB.
PROGRAMS = (
    "prompt_tokens=256", "micro_batch_size=16", "gpu_memory=0.15", "learning_rate=1e-4", "max_steps=24",
    "eval_every=12", "save_every=12",
)  # fmt: skip


# The embedded reader answers while planners are rewarded: it leaves the cores to the model in training.
def rl_plan(recipe: Recipe) -> Iterator[Command]:
    yield from _rewarded(recipe, "rl-plan", "plan", "sft-plan", *PROGRAMS, llm="embedded", index=str(recipe.index))


def rl_decompose(recipe: Recipe) -> Iterator[Command]:
    frozen = {"llm": "embedded", "plan_llm": "{sft-paper}", "index": str(recipe.index)}
    yield from _rewarded(recipe, "rl-decompose", "decompose", "sft-paper", *PROGRAMS, **frozen)


STAGES: Mapping[str, Callable[[Recipe], Iterator[Step]]] = {
    "data": data,
    "sft-plan": sft_plan,
    "sft-answer": sft_answer,
    "rl-answer": rl_answer,
    "rl-plan": rl_plan,
    "rl-decompose": rl_decompose,
    "judge": judge,
    "measure": measure,
}


def run(recipe: Recipe, stages: Sequence[str], *, dry: bool = False) -> None:
    """Run stages, then write the report.

    Args:
        recipe: Places.
        stages: Keys of `STAGES`, in order; all if empty.
        dry: Print the commands and run nothing.

    Raises:
        UsageError: There is no such stage, or a command failed; its own words stand above.
    """
    for stage in stages or STAGES:
        if stage not in STAGES:
            raise UsageError(f"there is no stage {stage!r}{nearest(stage, STAGES)}: {', '.join(STAGES)}")
        commands = [one for one in STAGES[stage](recipe) if dry or not one.product.exists()]
        print(f"{stage}: {len(commands)} commands" if commands else f"{stage}: done", flush=True)
        _run(recipe, stage, commands, dry=dry)
    if not dry:
        report(recipe)


def take_trained(recipe: Recipe, adapters: Path) -> list[str]:
    """Put trained adapters where their runs would have left them, and return the names of those that were not there.

    Args:
        recipe: Places.
        adapters: A folder with an adapter's folder for each name.
    """
    from pyrag_rl.verl.export import merge_adapter

    taken = []
    for adapter in sorted(one.parent for one in adapters.glob("*/adapter_config.json")):
        run = recipe.out / adapter.name
        if not (run / MERGED).exists():
            shutil.copytree(adapter, run / "adapter", dirs_exist_ok=True)
            merge_adapter(str(MODEL), adapter, run / MERGED)
            taken.append(adapter.name)
    return taken


def _run(recipe: Recipe, stage: str, steps: Sequence[Step], *, dry: bool) -> None:
    with _Servers(recipe) as servers:
        for one in steps:
            if not isinstance(one, Command):
                print(f"  {one}", flush=True)
                if not dry:
                    one.write()
                continue
            engines = {} if dry else servers.engines(one.served)
            line = [_filled(part, engines) for part in one.arguments]
            print(f"  pyrag {shlex.join(line)}", flush=True)
            if not dry and not one.product.exists():
                before = prefix_caches(engines) if line[0] == "bench" else {}
                _call(line)
                if before:
                    row = one.product.parent.name
                    record_prefix_caches(recipe.prefix_cache, row, before, prefix_caches(engines))


class _Servers:
    """One server for each model that a command names: vLLM writes with a merged model, and crawls with an adapter."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._open: dict[str, tuple[ExitStack, str]] = {}

    def engines(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the engines of models, served from now on; the servers of all others are ended."""
        for name in set(self._open) - set(names):
            self._open.pop(name)[0].close()
        for name in names:
            if name not in self._open:
                stack = ExitStack()
                folder = MODEL if name == "base" else self._recipe.out / name / MERGED
                log = self._recipe.out / f"{name}-server.log"
                engine = stack.enter_context(served(folder, log, port=_port(name)))
                self._open[name] = stack, engine
        return {name: engine for name, (_, engine) in self._open.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.engines(())


def _port(name: str) -> int:
    """The port of a model's server: the same in every session, since a run of `pyrag bench` goes on with its engines
    alone."""
    return 18_100 + zlib.crc32(name.encode()) % 900


def _filled(part: str, engines: Mapping[str, str]) -> str:
    for name, engine in engines.items():
        part = part.replace(f"{{{name}}}", engine)
    return part


def _call(line: Sequence[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "pyrag", *line], check=False)
    if done.returncode not in ((0, 1, 3) if line[0] == "bench" else (0,)):  # a bench in which questions failed
        raise UsageError(f"pyrag {shlex.join(line)} ended with {done.returncode}: run the same stage again to go on")


def report(recipe: Recipe) -> None:
    """Print which runs by reward are kept, write OUT/measure/report.md and planner.md of all runs so far, and print
    what prefix caches saved."""
    if judged := verdicts(recipe):
        print(judged)
    runs = [recipe.out / "measure" / name for name in ROWS if (recipe.out / "measure" / name / SUMMARY).is_file()]
    if not runs:
        return
    _call(["bench", "report", *map(str, runs), "--out", str(recipe.out / "measure")])
    planned = [one for one in runs if ROWS[one.name].method == "pyrag"]
    if planned:
        table = str(planner_table(planned))
        (recipe.out / "measure" / "planner.md").write_text(table + "\n", encoding="utf-8")
        print(table)
    if recipe.prefix_cache.is_file():
        print(prefix_cache_table(recipe.prefix_cache))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of sets and decompositions")
    parser.add_argument("--out", type=Path, default=Path("runs/small"))
    parser.add_argument("--limit", type=int, default=200, help="measured questions a set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--trained", type=Path, nargs="?", const=ADAPTERS, metavar="FOLDER",
        help=f"take trained adapters ({ADAPTERS} if none is named), train the others",
    )  # fmt: skip
    parser.add_argument("--gpu", action="store_true", help="fine-tune on a GPU; by reward, training stays on the CPU")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    given = parser.parse_args()
    recipe = Recipe(given.data, given.out, given.limit, given.seed, given.gpu)
    if given.trained and not given.dry_run:
        print(f"{given.trained}: {', '.join(take_trained(recipe, given.trained)) or 'all in place'}", flush=True)
    run(recipe, given.stages, dry=given.dry_run)


if __name__ == "__main__":
    guarded(main)
