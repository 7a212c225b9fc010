"""Benchmark of the embedded reader's evidence scores, as a reranker and as a check of another agent's answers.

    python -m benchmarks.evidence_gate --data DIR [--measured] [--limit 100]

`rerank` prints the recall of the gold passage of sub-questions among the first 1, 3 and 5 passages: in BM25's order, in
the reader's order of BM25's first 20 passages, and in the fusion of both orders. `check` always answers with the
reader's best span, like a model that never says unknown. For each threshold of `least_evidence`, it prints the share of
correct answers that the check rejects, and the share of wrong answers that it rejects with and without the gold passage
among the five passages. Questions are training questions that the reader did not learn from, or the evaluation
questions with `--measured`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pyrag.cli.main import guarded
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.embedded.reader.neural.network import Calibration
from pyrag.retrieval.hybrid import fuse
from pyrag.retrieval.rerank import READER_DEPTH
from pyrag.trace.model import Passage
from recipes.reader.layout import GoldQuestion
from recipes.reader.measuring import Reading as Study
from recipes.reader.measuring import candidates_in, held_out, measured, outcome, passage
from recipes.reader.score_statistics import auroc
from recipes.reader.search import Bm25

DEPTHS = (1, 3, 5)
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)


def rerank(reader: NeuralAnswerer, questions: Sequence[GoldQuestion], index: Bm25) -> dict[str, list[float]]:
    """Return the recall in percent at each of `DEPTHS`, by order."""
    orders: dict[str, list[list[str]]] = {"bm25": [], "reader": [], "both": []}
    for each in questions:
        passages = [passage(text) for text in index.search(each.question, READER_DEPTH)]
        scores = reader.evidence(each.question, passages)
        by_reader = [passages[at] for at in sorted(range(len(passages)), key=lambda at: (-scores[at], at))]
        both = fuse({"bm25": passages, "reader": by_reader}, {"bm25": 1.0, "reader": 1.0})
        for name, order in (("bm25", passages), ("reader", by_reader), ("both", both)):
            orders[name].append([ranked.id for ranked in order])
    return {name: [recall(lists, questions, depth) for depth in DEPTHS] for name, lists in orders.items()}


def recall(lists: Sequence[Sequence[str]], questions: Sequence[GoldQuestion], depth: int) -> float:
    hits = sum(each.text.id in ids[:depth] for ids, each in zip(lists, questions, strict=True))
    return 100 * hits / max(len(questions), 1)


def check(
    reader: NeuralAnswerer, questions: Sequence[GoldQuestion], index: Bm25, *, gold: bool
) -> list[tuple[float, bool]]:
    """Return for each question the evidence, and whether the best span is correct."""
    results: list[tuple[float, bool]] = []
    calibration: Calibration = reader.model.calibration
    for each in questions:
        texts = [text for text in index.search(each.question, 8) if gold or text.id != each.text.id][:5]
        passages: list[Passage] = [passage(text) for text in texts]
        study = Study(each, tuple(texts), tuple(candidates_in(reader.model, each.question, texts)))
        right = gold and bool(outcome(study, calibration).em)
        results.append((max(reader.evidence(each.question, passages), default=0.0), right))
    return results


def shares(results: Sequence[tuple[float, bool]], *, right: bool, threshold: float) -> float:
    """Return the percentage of the correct (or wrong) answers whose evidence is below a threshold."""
    scores = [evidence for evidence, was_right in results if was_right == right]
    return 100 * sum(evidence < threshold for evidence in scores) / max(len(scores), 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_gate", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--measured", action="store_true", help="the test questions: for last figures only")
    parser.add_argument("--limit", type=int, default=100, help="questions a set")
    options = parser.parse_args()
    reader = NeuralAnswerer()
    sets = measured(options.data) if options.measured else held_out(options.data, 0)
    for name, every, index in sets:
        questions = every[: options.limit]
        for order, figures in rerank(reader, questions, index).items():
            shown = ", ".join(f"{share:.1f}" for share in figures)
            print(f"{name} (n={len(questions)}) rerank {order}: {shown}", flush=True)
        with_gold, without_gold = (check(reader, questions, index, gold=gold) for gold in (True, False))
        wrong = [evidence for evidence, right in (*with_gold, *without_gold) if not right]
        print(f"{name} check: AUROC right/wrong {auroc([e for e, right in with_gold if right], wrong):.3f}")
        for threshold in THRESHOLDS:
            lost, stopped = (shares(with_gold, right=right, threshold=threshold) for right in (True, False))
            away = shares(without_gold, right=False, threshold=threshold)
            print(f"  below {threshold:g}: right {lost:.0f} %, wrong {stopped:.0f} %, without the passage {away:.0f} %")


if __name__ == "__main__":
    guarded(main)
