"""Fits the weights of the embedded reader's general scorer and writes `pyrag/embedded/reader/weights.py`.

A log-linear model over the candidates of a question, trained by plain stochastic gradient steps on a part of SQuAD's
training split that `benchmarks.embedded_reader` does not measure. Standard library only, so that anyone can repeat it.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.embedded_reader import Corpus, Item, load
from pyrag.cli.main import guarded
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.score import Candidate, Features, candidates, guess, total
from pyrag.embedded.reader.view import view
from pyrag.evaluation.metrics import exact_match, f1
from pyrag.trace.model import Passage

TARGET = Path("pyrag/embedded/reader/weights.py")
HEADER = '''"""Weights of the embedded reader's general scorer, as fitted by `benchmarks/embedded_reader_fit.py`."""

from __future__ import annotations

'''


def training(folder: Path, count: int, measured: int) -> tuple[list[Item], Corpus]:
    """SQuAD training questions other than those that the benchmark samples."""
    corpus = Corpus(load(folder / "train_full_corpus.jsonl.gz"))
    rows = load(folder / "train_full_questions.jsonl.gz")
    held_out = {row["id"] for row in random.Random(11).sample(rows, measured)}  # noqa: S311 - a fixed order, no secret
    rest = [row for row in rows if row["id"] not in held_out]
    sample = random.Random(5).sample(rest, count)  # noqa: S311 - a fixed order, no secret
    return [Item("squad", row["question"], tuple(row["answers"]), row["supporting"][0]) for row in sample], corpus


def found_for(question: str, passages: Sequence[Passage]) -> list[Candidate]:
    want = analyse(question)
    return candidates(want, [view(i, passage, want) for i, passage in enumerate(passages)])


def example(item: Item, passages: Sequence[Passage]) -> tuple[list[Features], list[float]] | None:
    """Features of each candidate and the share of right answers among them; None where none is near the gold."""
    found = found_for(item.question, passages)
    gold = [i for i, passage in enumerate(passages) if passage.id in item.gold.split("|")]
    marks = [
        (exact_match(each.text, item.answers) or (0.25 if f1(each.text, item.answers) > 0.65 else 0.0))
        if each.page.position in gold
        else 0.0
        for each in found
    ]
    if not sum(marks):
        return None
    best = max(marks)
    marks = [mark if mark == best else 0.0 for mark in marks]
    return [each.features for each in found], [mark / sum(marks) for mark in marks]


def train(
    examples: list[tuple[list[Features], list[float]]], epochs: int, rate: float, decay: float
) -> dict[str, float]:
    weights: dict[str, float] = defaultdict(float)
    order = random.Random(3)  # noqa: S311 - a fixed order, no secret
    for epoch in range(epochs):
        order.shuffle(examples)
        loss = 0.0
        step = rate / (1 + epoch)
        for features, marks in examples:
            scores = [total(each, weights) for each in features]
            top = max(scores)
            powers = [math.exp(score - top) for score in scores]
            mass = sum(powers)
            right = sum(power for power, mark in zip(powers, marks, strict=True) if mark)
            loss -= math.log(max(right / mass, 1e-9))
            for each, power, mark in zip(features, powers, marks, strict=True):
                wanted = power / right if mark else 0.0
                gradient = step * (wanted - power / mass)
                if abs(gradient) > 1e-5:
                    for name, value in each:
                        weights[name] += gradient * value
        for name in weights:
            weights[name] *= 1 - decay
        print(f"epoch {epoch}: loss {loss / len(examples):.3f}, {len(weights)} weights", flush=True)
    return {name: round(weight, 2) for name, weight in sorted(weights.items()) if abs(weight) >= 0.05}


def calibration(items: Sequence[Item], corpus: Corpus, weights: dict[str, float]) -> dict[str, float]:
    """Weights of the certainty: whether the best candidate is right, with the gold passage and without it."""
    rows: list[tuple[Features, float]] = []
    for item in items:
        passages = corpus.search(item.question, 6)
        without = [passage for passage in passages if passage.id != item.gold]
        for given in (passages[:5], without[:5]):
            want = analyse(item.question)
            best = guess(want, [view(i, passage, want) for i, passage in enumerate(given)], weights, {})
            if best:
                rows.append((best.signs, float(given is not without and f1(best.candidate.text, item.answers) > 0.6)))
    sureness: dict[str, float] = defaultdict(float)
    order = random.Random(4)  # noqa: S311 - a fixed order, no secret
    for epoch in range(30):
        order.shuffle(rows)
        for signs, right in rows:
            wrong = right - 1 / (1 + math.exp(-total(signs, sureness)))
            for name, value in signs:
                sureness[name] += 0.02 / (1 + epoch / 5) * wrong * value
    print(f"{len(rows)} readings for the certainty, {100 * sum(right for _, right in rows) / len(rows):.0f} % right")
    return {name: round(weight, 2) for name, weight in sorted(sureness.items())}


def write(weights: dict[str, float], sureness: dict[str, float]) -> None:
    tables = (
        f"{name}: dict[str, float] = {{\n{_entries(table)}\n}}  # fmt: skip\n"
        for name, table in (("WEIGHTS", weights), ("SURENESS", sureness))
    )
    TARGET.write_text(HEADER + "".join(tables), encoding="utf-8")


def _entries(weights: dict[str, float]) -> str:
    lines, line = [], "   "
    for name, weight in weights.items():
        entry = f" {name!r}: {weight},"
        if len(line) + len(entry) > 118:
            lines.append(line)
            line = "   "
        line += entry
    return "\n".join([*lines, line])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--count", type=int, default=12000)
    parser.add_argument("--measured", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--decay", type=float, default=0.0)
    arguments = parser.parse_args()
    items, corpus = training(arguments.data / "squad", arguments.count, arguments.measured)
    examples = []
    for item in items:
        passages = corpus.search(item.question, 3)
        if item.gold in [passage.id for passage in passages]:
            made = example(item, passages)
            examples += [made] if made else []
    print(f"{len(items)} questions, {len(examples)} with a right candidate")
    weights = train(examples, arguments.epochs, arguments.rate, arguments.decay)
    write(weights, calibration(items[: len(items) // 3], corpus, weights))


if __name__ == "__main__":
    guarded(main)
