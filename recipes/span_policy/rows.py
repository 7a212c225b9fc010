"""Rows for the span policy: `python -m recipes.span_policy.rows --data DIR --out DIR` writes train and eval
Parquet.

The questions are sub-questions of `recipes.reader`'s second stage (same seed, same folders), to be learnt by
reward from the reader that its first stage left, which never saw them; and those that it held out, to evaluate on. Each
comes with BM25's first passages; a share of them without the passage that answers, so that "unknown" is learnt too.
`pyrag train data analysis` makes rows of the same kind from any data set.
"""

# ruff: noqa: S311, T201  seeds must repeat; what was written is said

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyrag.cli.main import guarded
from pyrag_rl.data.rows import Document, TrainRow, write_rows
from recipes.reader import hops
from recipes.reader.layout import Asked, Text, missing
from recipes.reader.search import Bm25

PASSAGES = 5
WITHOUT = 0.25  # share of the questions whose passage is taken away
_SOURCES = {"2wiki": "2wikimultihopqa"}


def rows(asked: Iterable[Asked], index: Bm25, rng: random.Random) -> Iterator[TrainRow]:
    """Yield rows with the passage that answers among their documents, or none that does; others are left out.

    Args:
        asked: Questions with the passages that answer them.
        index: Searched for `PASSAGES` documents a question.
        rng: Draws the questions that lose their passage, a share of `WITHOUT`.
    """
    for place, each in enumerate(asked):
        found = [
            text for text in index.search(each.question, PASSAGES + 3) if text.id == each.text.id or _other(text, each)
        ]
        if rng.random() < WITHOUT:
            found = [text for text in found if text.id != each.text.id]
        found = found[:PASSAGES]
        if not found:
            continue
        yield TrainRow(
            index=place,
            id=f"{each.group}-{place}",
            agent="answer",
            source=_SOURCES.get(each.group, "musique"),
            question=each.question,
            answers=each.answers,
            messages=(),
            documents=tuple(Document(id=text.id, title=text.title, text=text.text) for text in found),
            supporting=(each.text.id,),
            sufficient=any(text.id == each.text.id for text in found),
        )


def _other(text: Text, each: Asked) -> bool:
    """Not another passage with the answer: whether that one answers too, nobody can tell."""
    return not any(answer.lower() in text.text.lower() for answer in each.answers)


def _write(data: Path, out: Path, *, seed: int, train: int, evaluate: int) -> tuple[int, int]:
    """Write `train.parquet` and `eval.parquet`, and return their numbers of rows. Raises `DataError`."""
    rng = random.Random(seed)
    multi = hops.load(data, 0)  # the seed of the reader's own partition
    index = Bm25(text for each in multi.texts.values() for text in each.values())
    learnt = [
        Asked(hop.question, (hop.answer,), hop.text, "hop")
        for hop in multi.train
        if hop.span and "+" not in hop.text.id
    ]
    counts = []
    for name, size, asked in (("train", train, learnt), ("eval", evaluate, list(multi.held_out))):
        chosen = rng.sample(asked, min(size, len(asked)))
        counts.append(write_rows(out / f"{name}.parquet", rows(chosen, index, rng)))
    return counts[0], counts[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m recipes.span_policy.rows", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.parquet and eval.parquet")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=int, default=1600, help="rows to train on, at most")
    parser.add_argument("--eval", type=int, default=400, help="rows to evaluate on, at most")
    given = parser.parse_args()
    if lacks := missing(given.data, hops.SETS):
        parser.error(lacks)
    given.out.mkdir(parents=True, exist_ok=True)
    trained, evaluated = _write(given.data, given.out, seed=given.seed, train=given.train, evaluate=given.eval)
    print(f"{trained} rows to train on, {evaluated} to evaluate on, in {given.out}")


if __name__ == "__main__":
    guarded(main)
