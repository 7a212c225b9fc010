"""Rows for the span policy: `python -m recipes.span_policy.rows --data DIR --out DIR` writes train and eval Parquet.

Training rows are sub-questions of the second stage of `recipes.reader`, with the same seed and folders; a reader of the
first stage has not seen them. Evaluation rows are the sub-questions that the stage holds out. Each row has the first
passages that BM25 finds. Some rows lack the passage with the answer, so that the reader learns "unknown" too.
`pyrag train data analysis` makes such rows from any data set.
"""

# ruff: noqa: S311, T201  seeds must repeat; the result is printed

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyrag.cli.main import guarded
from pyrag_rl.data.rows import Document, TrainRow, write_rows
from recipes.reader import hops
from recipes.reader.layout import GoldQuestion, Text, missing
from recipes.reader.search import Bm25

PASSAGES = 5
WITHOUT = 0.25  # share of the rows without the passage that holds the answer
_SOURCES = {"2wiki": "2wikimultihopqa"}


def rows(questions: Iterable[GoldQuestion], index: Bm25, rng: random.Random) -> Iterator[TrainRow]:
    """Yield one row for each question that has passages.

    Args:
        questions: Questions with the passages that hold their answers.
        index: Index used to find a row's documents, `PASSAGES` at most.
        rng: Random generator that chooses a share of `WITHOUT` of the questions, whose rows lack the passage with the
            answer.
    """
    for place, question in enumerate(questions):
        texts = [
            text
            for text in index.search(question.question, PASSAGES + 3)
            if text.id == question.text.id or _other(text, question)
        ]
        if rng.random() < WITHOUT:
            texts = [text for text in texts if text.id != question.text.id]
        texts = texts[:PASSAGES]
        if not texts:
            continue
        yield TrainRow(
            index=place,
            id=f"{question.group}-{place}",
            agent="answer",
            source=_SOURCES.get(question.group, "musique"),
            question=question.question,
            answers=question.answers,
            messages=(),
            documents=tuple(Document(id=text.id, title=text.title, text=text.text) for text in texts),
            supporting=(question.text.id,),
            sufficient=any(text.id == question.text.id for text in texts),
        )


def _other(text: Text, question: GoldQuestion) -> bool:
    """Return whether a passage lacks the answer. (A passage that contains it may or may not answer the question.)"""
    return not any(answer.lower() in text.text.lower() for answer in question.answers)


def _write(data: Path, out: Path, *, seed: int, train: int, evaluate: int) -> tuple[int, int]:
    """Write `train.parquet` and `eval.parquet`, and return their numbers of rows.

    Raises:
        DataError: A data set is missing or broken.
    """
    rng = random.Random(seed)
    multi = hops.load(data, 0)  # the seed of the reader's own partition
    index = Bm25(text for each in multi.texts.values() for text in each.values())
    train_questions = [
        GoldQuestion(hop.question, (hop.answer,), hop.text, "hop")
        for hop in multi.train
        if hop.span and "+" not in hop.text.id
    ]
    counts = []
    for name, size, questions in (("train", train, train_questions), ("eval", evaluate, list(multi.held_out))):
        chosen = rng.sample(questions, min(size, len(questions)))
        counts.append(write_rows(out / f"{name}.parquet", rows(chosen, index, rng)))
    return counts[0], counts[1]


def main() -> None:
    """Write the rows with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m recipes.span_policy.rows", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.parquet and eval.parquet")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=int, default=1600, help="rows to train on, at most")
    parser.add_argument("--eval", type=int, default=400, help="rows to evaluate on, at most")
    options = parser.parse_args()
    if lacks := missing(options.data, hops.SETS):
        parser.error(lacks)
    options.out.mkdir(parents=True, exist_ok=True)
    trained, evaluated = _write(
        options.data, options.out, seed=options.seed, train=options.train, evaluate=options.eval
    )
    print(f"{trained} rows to train on, {evaluated} to evaluate on, in {options.out}")


if __name__ == "__main__":
    guarded(main)
