"""Training rows of the recipe of docs/small-model.md: its places, its steps, and the stage `data`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.evaluation.datasets.layout import Question, find_file, read_questions_as

TRAINED_ON = "hotpotqa,musique,2wikimultihopqa"  # sets with training questions, for rewards
SOURCES = ("musique", "2wiki=1000", "compositional-celebrities=150", "mquake-hard=200", "break-hotpot")
# Rows of the planner's last steps; half of them come from MuSiQue's decompositions.
MOSTLY_MUSIQUE = ("musique", "2wiki=150", "compositional-celebrities=30", "mquake-hard=40", "break-hotpot=120")
# MuSiQue has few decompositions with three or four searches: they are repeated and nested, and more are generated.
LONGER = ("--repeat-rare", "3", "--nested-share", "0.4")
PLANNED = ("--planned", "2500")
SHORT = ("--prompts", "small")
MERGED = "merged"  # folder of a run's model with the weights of its adapter
HELD_OUT = 0.12  # share of the training questions without a reward for any agent, on which runs by reward are judged


@dataclass(frozen=True, slots=True)
class Recipe:
    """Places and options of the recipe. `limit` is the number of test questions of each set."""

    data: Path
    out: Path
    limit: int = 200
    seed: int = 0
    gpu: bool = False  # whether supervised training runs on a GPU

    @property
    def rows(self) -> Path:
        return self.out / "rows"

    @property
    def index(self) -> Path:
        return self.out / "index"

    @property
    def prefix_cache(self) -> Path:
        return self.out / "measure" / "prefix-cache.jsonl"


@dataclass(frozen=True, slots=True)
class Command:
    """Command of pyrag, which is skipped if `product` exists.

    `{NAME}` in an argument stands for the engine of a run's model, and `{base}` for the engine of the untrained model.
    They are served while the command runs.
    """

    arguments: tuple[str, ...]
    product: Path

    @property
    def served(self) -> tuple[str, ...]:
        """Names of the models to serve."""
        return tuple(dict.fromkeys(name for part in self.arguments for name in _NAMED.findall(part)))


@dataclass(frozen=True, slots=True)
class Mixture:
    """Mixture of rows from other files for supervised training, skipped if `product` exists.

    It has the first rows of each file (all if the number is 0), each repeated the given number of times.
    """

    parts: tuple[tuple[Path, int, int], ...]  # file, number of its rows, repetitions
    product: Path

    def __str__(self) -> str:
        return f"rows of {', '.join(file.name for file, *_ in self.parts)} into {self.product}"

    def write(self) -> None:
        """Write the mixture."""
        from pyrag_rl.data.rows import read_conversations, write_conversations

        rows = []
        for file, count, times in self.parts:
            rows += read_conversations(file)[: count or None] * times
        write_conversations(self.product, rows)


@dataclass(frozen=True, slots=True)
class _Sourced(Question):
    source: str = ""


@dataclass(frozen=True, slots=True)
class HeldOutQuestions:
    """Question sets with passages, one for each source, made of training questions; skipped if `product` exists.

    They contain the questions that `pyrag train data` excludes from all rows if `--eval-share` is `shares` or more.
    """

    decompositions: Path
    shares: Mapping[str, float]
    product: Path

    def __str__(self) -> str:
        return f"held-out questions of {', '.join(self.shares)} into {self.product}"

    def write(self) -> None:
        """Write the sets, except for questions whose gold passages were removed on purpose."""
        import msgspec

        from pyrag_rl.data.decompositions.source import read_decompositions
        from pyrag_rl.data.held_out import draw

        plain = find_file(self.decompositions, "questions")
        asked = [*read_decompositions(self.decompositions), *(read_questions_as(_Sourced, plain) if plain else ())]
        making = self.product.with_suffix(".part")
        for source, share in self.shares.items():
            answerable = [question for question in asked if question.source == source and question.answerable]
            held = [question for question in answerable if draw(question.question) < share]
            (making / source).mkdir(parents=True, exist_ok=True)
            with (making / source / "questions.jsonl").open("wb") as lines:
                for question in held:
                    lines.write(msgspec.json.encode({name: getattr(question, name) for name in _WRITTEN}) + b"\n")
        making.rename(self.product)


Step = Command | Mixture | HeldOutQuestions
_WRITTEN = ("id", "question", "answers", "type", "hops", "supporting")
_NAMED = re.compile(r"\{([a-z-]+)\}")


def _rows(recipe: Recipe, name: str, *arguments: object, evaluate: str = "0.03") -> Command:
    out = recipe.rows / f"{name}.parquet"
    held = ("--eval-share", evaluate, "--eval-out", recipe.rows / f"{name}-eval.parquet", "--leave-out")
    line = ("train", "data", *arguments, *SHORT, *held, "--index-dir", recipe.out / "indexes", "--out", out)
    return Command(tuple(map(str, line)), out)


def data(recipe: Recipe) -> Iterator[Step]:
    """Yield the commands for the rows of all stages, and for the index over which programs are rewarded."""
    gold = _gold(recipe)
    yield from _gpu_rows(recipe) if recipe.gpu else _cpu_rows(recipe)
    halves = tuple(recipe.rows / f"sft-paper-{task}.parquet" for task in ("decompose", "plan"))
    for half, task in zip(halves, ("decompose", "plan"), strict=True):
        yield _rows(recipe, half.stem, task, *gold, *_sources(SOURCES), *LONGER, *PLANNED, "--sft")
    yield Mixture(tuple((half, 0, 1) for half in halves), recipe.rows / "sft-paper.parquet")
    sets = ("--data", recipe.data, "--sets")
    # Whole passages, as a search finds them when the model is served. For a tenth of them, the answer is "unknown".
    squad = ("squad", "--split", "train_full", "--limit", "400", "--depths", "3,5")
    shares = ("--several-share", "0.9", "--unknown-share", "0.1", "--seed", "7")
    steps = (*gold, *_sources(("musique", "2wiki=400")), *shares)
    yield _rows(recipe, "rl-answer", "answer", *sets, *squad, *steps, evaluate=str(HELD_OUT))
    rag = ("--limit", "300", *gold, *_sources(("musique=300",)), "--depths", "5", "--max-row-tokens", "1100")
    yield _rows(recipe, "rl-rag", "rag", *sets, TRAINED_ON, *rag, evaluate=str(HELD_OUT))
    # Programs are only rewarded on sources with passages that a search can find.
    train = ("--decompositions", recipe.data / "decompositions", *_sources(("musique-train", "2wiki-train=170")))
    for name, task in (("rl-plan", "joint"), ("rl-decompose", "decompose")):
        yield _rows(recipe, name, task, *sets, "musique", *train, evaluate="0.22")
    yield index(recipe)


def index(recipe: Recipe) -> Command:
    """Return the command that indexes the passages of training questions.

    Args:
        recipe: Places and options of the recipe.
    """
    corpus = recipe.data / "decompositions" / "corpus.jsonl.gz"
    return Command(("index", str(corpus), "--out", str(recipe.index)), recipe.index)


def _gold(recipe: Recipe) -> tuple[object, ...]:
    return ("--decompositions", recipe.data / "decompositions", "--splits", "train,dev,none")


def _sources(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(part for name in names for part in ("--source", name))


def _cpu_rows(recipe: Recipe) -> Iterator[Command]:
    """Yield the commands for few and short rows, for fine-tuning on a CPU."""
    gold, named = _gold(recipe), _sources(SOURCES)
    yield _rows(
        recipe, "sft-plan-start", "joint", *gold, *named, "--repair-share", "0.05", "--single-share", "0.08", "--sft",
        *LONGER, *PLANNED,
    )  # fmt: skip
    yield _planner_rows(recipe, "sft-plan")
    sets = ("--data", recipe.data, "--sets")
    reading = ("--split", "train_full", "--limit", "5000", "--several-share", "0.4", "--max-row-tokens", "480", "--sft")
    yield _rows(recipe, "sft-answer", "answer", "synthesis", *sets, "squad", *gold, *named, *reading)
    whole = (*_sources(("musique", "2wiki")), "--max-row-tokens", "500", "--sft")
    yield _rows(recipe, "sft-rag", "rag", *sets, TRAINED_ON, *gold, *whole)


def _gpu_rows(recipe: Recipe) -> Iterator[Step]:
    """Yield the commands for rows with whole passages, for fine-tuning on a GPU."""
    gold, rest = _gold(recipe), SOURCES[2:]
    whole = ("--depths", "3,5", "--unknown-share", "0.1", "--max-row-tokens", "1000", "--seed", "5", "--sft")
    squad = ("--data", recipe.data, "--sets", "squad", "--split", "train_full", "--limit", "22000")
    named, plans = _sources(("musique", "2wiki", *rest)), _sources(("musique", "2wiki=1500", *rest))
    asked = (*_sources(("musique", "2wiki")), "--depths", "5", "--max-row-tokens", "1100", "--sft")
    sets = ("--data", recipe.data, "--sets", TRAINED_ON)
    more = ("--repair-share", "0.05", "--single-share", "0.08", "--repeat-rare", "3", "--nested-share", "0.5")
    yield _rows(recipe, "gpu-squad", "answer", *squad, "--several-share", "0.6", *whole)
    yield _rows(recipe, "gpu-steps", "answer", "synthesis", *gold, *named, "--several-share", "0.8", *whole)
    yield _rows(recipe, "gpu-rag", "rag", *sets, *gold, *asked)
    yield _rows(recipe, "gpu-plan", "joint", *gold, *plans, *more, "--planned", "5000", "--sft")
    yield _planner_rows(recipe, "gpu-plan-musique")
    parts = {
        "sft-answer": (("gpu-squad", 0, 1), ("gpu-steps", 0, 2)),
        "sft-rag": (("gpu-squad", 14_000, 1), ("gpu-rag", 0, 3)),
        "sft-plan": (("gpu-plan", 0, 2), ("gpu-plan-musique", 0, 2)),
    }
    for name, mixed in parts.items():
        files = tuple((recipe.rows / f"{file}.parquet", count, times) for file, count, times in mixed)
        yield Mixture(files, recipe.rows / f"{name}.parquet")


def _planner_rows(recipe: Recipe, name: str) -> Command:
    """Return the command for the planner's rows, half of which come from MuSiQue."""
    shares = ("--repair-share", "0.05", "--single-share", "0.04", "--repeat-rare", "3", "--nested-share", "0.8")
    more = ("--planned", "400", "--seed", "1", "--sft")
    return _rows(recipe, name, "joint", *_gold(recipe), *_sources(MOSTLY_MUSIQUE), *shares, *more)
