"""Measurements of the recipe of docs/small-model.md by `pyrag bench`: its table's rows, and gains by reward training.

`judge` measures each reward-trained model on whole held-out training questions, with the same pipeline before and after
training. If training by reward did not improve the model, `measure` uses the model from before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from benchmarks.small_model_rows import HELD_OUT, MERGED, SHORT, Command, HeldOutQuestions, Recipe, Step, index
from pyrag.evaluation.intervals import difference
from pyrag.evaluation.reports.tables import signed
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.folder import SUMMARY, read_run

MEASURED = ("2wikimultihopqa", "musique", "hotpotqa", "popqa", "bamboogle")
JUDGED_ON = {"2wiki-train": HELD_OUT, "musique-train": HELD_OUT, "hotpotqa-train": 0.2}  # no row has the last one
PATIENT = ("--deadline", "300", "--request", "max_tokens=256")  # eight questions at once wait for two cores
WHOLE = ("--whole-question",)
JOINT = ("--joint", *WHOLE)
UNTRAINED = ("--limit", "20")  # the untrained model writes as much as it may: a question takes minutes
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class Row:
    """Method with its options, the engine that answers, and the engine that plans (if empty, the one that answers)."""

    method: str
    answers: str
    plans: str = ""
    options: tuple[str, ...] = ()

    @property
    def line(self) -> list[str]:
        """Options of `pyrag bench`."""
        engines = ["--llm", self.answers, *(("--plan-llm", self.plans) if self.plans else ()), *self.options]
        small = [] if self.answers + self.plans == "embedded" else [*SHORT, *PATIENT]
        return ["--method", self.method, *engines, *small]


ROWS: Mapping[str, Row] = {
    "direct": Row("direct", "{base}"),
    "vanilla": Row("vanilla", "{base}", "", UNTRAINED),
    "rag-sft": Row("vanilla", "{sft-rag}"),
    "rag-rl": Row("vanilla", "{rl-rag}"),
    "pyrag-untrained": Row("pyrag", "{base}", "", (*JOINT, *UNTRAINED)),
    "pyrag-sft": Row("pyrag", "{sft-answer}", "{sft-plan}", JOINT),
    "pyrag-sft-paper": Row("pyrag", "{sft-answer}", "{sft-paper}", ("--decompose-llm", "{sft-paper}", *WHOLE)),
    "pyrag-sft-fast": Row("pyrag", "{sft-answer}", "{sft-plan}", ("--profile", "fast", *WHOLE)),
    "pyrag-rl": Row("pyrag", "{rl-answer}", "{rl-plan}", JOINT),
    "pyrag-sft-reader": Row("pyrag", "embedded", "{sft-plan}", JOINT),
    "pyrag-rl-reader": Row("pyrag", "embedded", "{rl-plan}", JOINT),
    "embedded": Row("pyrag", "embedded", "", WHOLE),
}
# Pipelines with the models from before and after each run by reward.
JUDGED: Mapping[str, Mapping[str, Row]] = {
    "rl-answer": {
        BEFORE: Row("pyrag", "{sft-answer}", "{sft-plan}", JOINT),
        AFTER: Row("pyrag", "{rl-answer}", "{sft-plan}", JOINT),
    },
    "rl-rag": {BEFORE: Row("vanilla", "{sft-rag}"), AFTER: Row("vanilla", "{rl-rag}")},
    "rl-plan": {
        BEFORE: Row("pyrag", "embedded", "{sft-plan}", JOINT),
        AFTER: Row("pyrag", "embedded", "{rl-plan}", JOINT),
    },
    "rl-decompose": {
        BEFORE: Row("pyrag", "embedded", "{sft-paper}", ("--decompose-llm", "{sft-paper}", *WHOLE)),
        AFTER: Row("pyrag", "embedded", "{sft-paper}", ("--decompose-llm", "{rl-decompose}", *WHOLE)),
    },
}


def judge(recipe: Recipe) -> Iterator[Step]:
    """Yield two `pyrag bench` commands for each reward-trained model, over held-out training questions."""
    questions = recipe.out / "judge" / "questions"
    yield index(recipe)
    yield HeldOutQuestions(recipe.data / "decompositions", JUDGED_ON, questions)
    present = _present_models(recipe)
    line = ["bench", "--data", str(questions), "--sets", ",".join(JUDGED_ON), "--index", str(recipe.index)]
    for name, rows in JUDGED.items():
        for when, row in rows.items():
            out = recipe.out / "judge" / name / when
            command = Command((*line, "--seed", str(recipe.seed), *row.line, "--out", str(out)), out / SUMMARY)
            if present.issuperset({*command.served, name}):
                yield command


def measure(recipe: Recipe) -> Iterator[Command]:
    """Yield a `pyrag bench` command for each row of the table."""
    present = {name for name in _present_models(recipe) if is_kept(recipe, name)}
    sets = [name for name in MEASURED if (recipe.data / name).is_dir()]
    corpus = recipe.data / "hotpotqa" / "corpus.jsonl.gz"  # for sets without one
    for name, row in ROWS.items():
        if row.answers == "{rl-answer}" and "rl-plan" not in present:
            row = Row(row.method, row.answers, "{sft-plan}", row.options)  # only the Answer agent learned by reward
        out = recipe.out / "measure" / name
        line = ["bench", "--data", str(recipe.data), "--sets", ",".join(sets), "--corpus", str(corpus)]
        line += ["--index-dir", str(recipe.out / "indexes"), "--limit", str(recipe.limit), "--seed", str(recipe.seed)]
        command = Command((*line, *row.line, "--out", str(out)), out / SUMMARY)
        if present.issuperset(command.served):
            yield command


def _present_models(recipe: Recipe) -> set[str]:
    """Return the names of the models that exist."""
    names = ("sft-answer", "sft-plan", "sft-paper", "sft-rag", *JUDGED)
    return {"base", *(name for name in names if (recipe.out / name / MERGED).is_dir())}


def is_kept(recipe: Recipe, name: str) -> bool:
    """Return whether a model is used. Training by reward must have raised its score on held-out questions.

    Args:
        recipe: Places and options of the recipe.
        name: Name of the model. A model that was not judged is used.
    """
    pair = _judged(recipe, name)
    return pair is None or fmean(pair[1]) > fmean(pair[0])


def verdicts(recipe: Recipe) -> Table:
    """Return a line for each reward-trained model that was judged: EM before and after training, and the change."""
    lines: list[tuple[str, ...]] = []
    for name in JUDGED:
        if pair := _judged(recipe, name):
            before, after = pair
            word = "kept" if fmean(after) > fmean(before) else "not kept"
            change = difference(after, before)
            means = (f"{100 * fmean(scores):.1f}" for scores in (before, after))
            lines.append((name, str(len(before)), *means, signed(change), f"{change.p:.2f}", word))
    return Table(("run by reward", "held-out questions", "EM before", "after", "change [95 %]", "p", "verdict"), lines)


def _judged(recipe: Recipe, name: str) -> tuple[list[float], list[float]] | None:
    """Return the EM of each question before and after training by reward; None if the model was not judged."""
    folders = [recipe.out / "judge" / name / when for when in (BEFORE, AFTER)]
    if not all((folder / SUMMARY).is_file() for folder in folders):
        return None
    before, after = ({(row.set, row.id): row.em for row in read_run(folder).rows} for folder in folders)
    shared = [key for key in before if key in after]
    return ([before[key] for key in shared], [after[key] for key in shared]) if shared else None
