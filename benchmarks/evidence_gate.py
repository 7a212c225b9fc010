"""What the embedded reader's evidence scores are worth: as a reranker, and as a check beside another answerer.

    python -m benchmarks.evidence_gate --data DIR [--measured] [--limit 100]

Sub-questions over BM25. `rerank`: recall of the passage that answers among the first 1, 3 and 5, in BM25's order, in
the reader's order of BM25's first 20, and in both orders fused. `check`: an answerer that always says the reader's best
span stands for a model that never says unknown; for thresholds of `least_evidence`, the share of its right answers that
the check throws away, and the shares of wrong ones that it stops, where the gold passage is among the five and where
it was taken out. Training questions that the reader did not learn from, or with `--measured` the measured ones.
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
from recipes.reader.layout import Asked
from recipes.reader.measuring import Reading as Study
from recipes.reader.measuring import found_in, held_out, measured, outcome, passage
from recipes.reader.score_statistics import auroc
from recipes.reader.search import Bm25

DEPTHS = (1, 3, 5)
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)


def rerank(reader: NeuralAnswerer, asked: Sequence[Asked], index: Bm25) -> dict[str, list[float]]:
    """Recall in percent at each of `DEPTHS`, by order."""
    orders: dict[str, list[list[str]]] = {"bm25": [], "reader": [], "both": []}
    for each in asked:
        found = [passage(text) for text in index.search(each.question, READER_DEPTH)]
        scores = reader.evidence(each.question, found)
        by_reader = [found[at] for at in sorted(range(len(found)), key=lambda at: (-scores[at], at))]
        both = fuse({"bm25": found, "reader": by_reader}, {"bm25": 1.0, "reader": 1.0})
        for name, order in (("bm25", found), ("reader", by_reader), ("both", both)):
            orders[name].append([one.id for one in order])
    return {name: [recall(lists, asked, depth) for depth in DEPTHS] for name, lists in orders.items()}


def recall(lists: Sequence[Sequence[str]], asked: Sequence[Asked], depth: int) -> float:
    hits = sum(each.text.id in ids[:depth] for ids, each in zip(lists, asked, strict=True))
    return 100 * hits / max(len(asked), 1)


def check(reader: NeuralAnswerer, asked: Sequence[Asked], index: Bm25, *, gold: bool) -> list[tuple[float, bool]]:
    """The evidence for each question, and whether the best span is right."""
    found: list[tuple[float, bool]] = []
    calibration: Calibration = reader.model.calibration
    for each in asked:
        texts = [text for text in index.search(each.question, 8) if gold or text.id != each.text.id][:5]
        passages: list[Passage] = [passage(text) for text in texts]
        study = Study(each, tuple(texts), tuple(found_in(reader.model, each.question, texts)))
        right = gold and bool(outcome(study, calibration).em)
        found.append((max(reader.evidence(each.question, passages), default=0.0), right))
    return found


def shares(results: Sequence[tuple[float, bool]], *, right: bool, least: float) -> float:
    """Percent of the right or wrong answers whose evidence is below `least`."""
    kept = [evidence for evidence, was_right in results if was_right == right]
    return 100 * sum(evidence < least for evidence in kept) / max(len(kept), 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence_gate", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--measured", action="store_true", help="the measured questions: for last figures only")
    parser.add_argument("--limit", type=int, default=100, help="questions a set")
    options = parser.parse_args()
    reader = NeuralAnswerer()
    sets = measured(options.data) if options.measured else held_out(options.data, 0)
    for name, every, index in sets:
        asked = every[: options.limit]
        for order, figures in rerank(reader, asked, index).items():
            print(f"{name} (n={len(asked)}) rerank {order}: " + ", ".join(f"{one:.1f}" for one in figures), flush=True)
        given, gone = (check(reader, asked, index, gold=gold) for gold in (True, False))
        wrong = [evidence for evidence, right in (*given, *gone) if not right]
        print(f"{name} check: AUROC right/wrong {auroc([e for e, right in given if right], wrong):.3f}")
        for least in THRESHOLDS:
            lost, stopped = (shares(given, right=right, least=least) for right in (True, False))
            away = shares(gone, right=False, least=least)
            print(f"  below {least:g}: right {lost:.0f} %, wrong {stopped:.0f} %, without the passage {away:.0f} %")


if __name__ == "__main__":
    guarded(main)
