"""Recipe of docs/small-model.md: trains SmolLM2-135M-Instruct for every agent, and measures it, stage by stage.

    python -m benchmarks.small_model [STAGE …] [--trained [FOLDER]] [--gpu] [--data FOLDER] [--out FOLDER] [--limit N]

Each stage is a list of `pyrag` commands. A command is skipped if its product exists, and continued if it was
interrupted, so the same command line resumes. `--trained` uses the adapters of rl/adapters/small instead of training
them, `--gpu` trains on a GPU, with twenty times as many tokens, and `--dry-run` prints the commands. The parameters of
training are in rl/configs/small-*.yaml. The recipe needs the environment of `make train-env`; `make small-model` runs
it. Without STAGE, all stages run, and a report is written.
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
    """Return the commands that fine-tune from the start on a GPU. Mixed rows have no held-out part."""
    more = ("--algorithm", "sft", *_set(*settings))
    yield from _training(recipe, name, agent, "small-gpu", *more, evaluated=False)


def _set(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def sft_plan(recipe: Recipe) -> Iterator[Command]:
    if recipe.gpu:
        short = ("prompt_tokens=256", "response_tokens=256", "batch_size=64", "micro_batch_size=64")
        yield from _on_gpu(recipe, "sft-plan", "plan", "learning_rate=1e-3", "max_steps=580", *short)
    else:
        if not (recipe.out / "sft-plan" / MERGED).exists():
            yield from _training(recipe, "sft-plan-start", "plan", "small-planner", "--algorithm", "sft")
        more = _starting_from(recipe, "sft-plan-start", "max_steps=140", "learning_rate=6e-4")
        yield from _training(recipe, "sft-plan", "plan", "small-planner", *more)
    # One adapter for Decompose and Plan of `--profile paper`; it starts from an adapter that can write programs.
    more = _starting_from(recipe, "sft-plan", "max_steps=160", "learning_rate=6e-4")
    yield from _training(recipe, "sft-paper", "plan", "small-planner", *more, evaluated=False)


def sft_answer(recipe: Recipe) -> Iterator[Command]:
    if recipe.gpu:
        yield from _on_gpu(recipe, "sft-answer", "answer", "max_steps=690")
        yield from _on_gpu(recipe, "sft-rag", "answer", "max_steps=430", "prompt_tokens=1100")
        return
    yield from _training(recipe, "sft-answer", "answer", "small-answer", "--algorithm", "sft")
    # It starts from the reader's adapter. A whole question is answered over five passages.
    more = _starting_from(recipe, "sft-answer", "prompt_tokens=640", "max_steps=45", "learning_rate=4e-4")
    yield from _training(recipe, "sft-rag", "answer", "small-answer", *more)


def _starting_from(recipe: Recipe, start: str, *settings: str) -> list[str]:
    """Return the options for supervised training that starts from another run's adapter."""
    return ["--algorithm", "sft", "--adapter", str(recipe.out / start / "adapter"), *_set(*settings)]


def _rewarded(recipe: Recipe, name: str, agent: str, start: str, *settings: str, **frozen: str) -> Iterator[Command]:
    """Return the commands that train by reward from a supervised adapter, while the other agents are served."""
    more = ["--adapter", str(recipe.out / start / "adapter")]
    more += _set(*settings, *(f"runtime.{setting}={engine}" for setting, engine in frozen.items()))
    yield from _training(recipe, name, agent, "small-rl", *more)


# Agents fine-tuned on a GPU get worse at the learning rate of the configuration.
GENTLE = ("response_tokens=32", "learning_rate=5e-5", "max_steps=28", "eval_every=14", "save_every=14")


def rl_answer(recipe: Recipe) -> Iterator[Command]:
    yield from _rewarded(recipe, "rl-answer", "answer", "sft-answer", *(GENTLE if recipe.gpu else ()))
    # Whole passages. With twice this learning rate, the Answer agent that was trained on a GPU got worse.
    whole = ("prompt_tokens=1100", "response_tokens=32", "learning_rate=1e-4", "max_steps=28")
    yield from _rewarded(recipe, "rl-rag", "answer", "sft-rag", *whole, "eval_every=14", "save_every=14")


# Programs are ten times as long as answers: 64 at once would fill 24 GB.
PROGRAMS = (
    "prompt_tokens=256", "micro_batch_size=16", "gpu_memory=0.15", "learning_rate=1e-4", "max_steps=24",
    "eval_every=12", "save_every=12",
)  # fmt: skip


# The embedded reader answers while planners are rewarded, which leaves the cores to the model in training.
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
        recipe: Places and options of the recipe.
        stages: Keys of `STAGES`, in order; all if empty.
        dry: Print the commands and run nothing.

    Raises:
        UsageError: A stage does not exist, or a command failed after printing its own message.
    """
    for stage in stages or STAGES:
        if stage not in STAGES:
            raise UsageError(f"there is no stage {stage!r}{nearest(stage, STAGES)}: {', '.join(STAGES)}")
        commands = [step for step in STAGES[stage](recipe) if dry or not step.product.exists()]
        print(f"{stage}: {len(commands)} commands" if commands else f"{stage}: done", flush=True)
        _run(recipe, stage, commands, dry=dry)
    if not dry:
        report(recipe)


def take_trained(recipe: Recipe, adapters: Path) -> list[str]:
    """Copy trained adapters to the folders of their runs. Return the names of the copied ones.

    Args:
        recipe: Places and options of the recipe.
        adapters: A folder with a folder for each adapter.
    """
    from pyrag_rl.verl.export import merge_adapter

    copied = []
    for adapter in sorted(path.parent for path in adapters.glob("*/adapter_config.json")):
        run = recipe.out / adapter.name
        if not (run / MERGED).exists():
            shutil.copytree(adapter, run / "adapter", dirs_exist_ok=True)
            merge_adapter(str(MODEL), adapter, run / MERGED)
            copied.append(adapter.name)
    return copied


def _run(recipe: Recipe, stage: str, steps: Sequence[Step], *, dry: bool) -> None:
    with _Servers(recipe) as servers:
        for step in steps:
            if not isinstance(step, Command):
                print(f"  {step}", flush=True)
                if not dry:
                    step.write()
                continue
            engines = {} if dry else servers.engines(step.served)
            line = [_filled(part, engines) for part in step.arguments]
            print(f"  pyrag {shlex.join(line)}", flush=True)
            if not dry and not step.product.exists():
                before = prefix_caches(engines) if line[0] == "bench" else {}
                _call(line)
                if before:
                    row = step.product.parent.name
                    record_prefix_caches(recipe.prefix_cache, row, before, prefix_caches(engines))


class _Servers:
    """Servers of the models that a command names. vLLM is fast with a merged model, and very slow with an adapter."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._open: dict[str, tuple[ExitStack, str]] = {}

    def engines(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the engines of models, starting their servers. Servers of all other models are stopped."""
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
    """Return the fixed port of a model's server; a bench run can only be resumed with the same engines."""
    return 18_100 + zlib.crc32(name.encode()) % 900


def _filled(part: str, engines: Mapping[str, str]) -> str:
    for name, engine in engines.items():
        part = part.replace(f"{{{name}}}", engine)
    return part


def _call(line: Sequence[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "pyrag", *line], check=False)
    if done.returncode not in ((0, 1, 3) if line[0] == "bench" else (0,)):  # a bench in which questions failed
        raise UsageError(f"pyrag {shlex.join(line)} ended with {done.returncode}: run the same stage again to continue")


def report(recipe: Recipe) -> None:
    """Print which reward-trained models are used and what prefix caches saved. Write report.md and planner.md."""
    if judged := verdicts(recipe):
        print(judged)
    runs = [recipe.out / "measure" / name for name in ROWS if (recipe.out / "measure" / name / SUMMARY).is_file()]
    if not runs:
        return
    _call(["bench", "report", *map(str, runs), "--out", str(recipe.out / "measure")])
    planned = [folder for folder in runs if ROWS[folder.name].method == "pyrag"]
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
    parser.add_argument("--limit", type=int, default=200, help="test questions a set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--trained", type=Path, nargs="?", const=ADAPTERS, metavar="FOLDER",
        help=f"take trained adapters ({ADAPTERS} if none is named), train the others",
    )  # fmt: skip
    parser.add_argument("--gpu", action="store_true", help="fine-tune on a GPU; by reward, training stays on the CPU")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    options = parser.parse_args()
    recipe = Recipe(options.data, options.out, options.limit, options.seed, options.gpu)
    if options.trained and not options.dry_run:
        print(f"{options.trained}: {', '.join(take_trained(recipe, options.trained)) or 'all in place'}", flush=True)
    run(recipe, options.stages, dry=options.dry_run)


if __name__ == "__main__":
    guarded(main)
