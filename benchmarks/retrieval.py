"""Benchmark of retrieval: recall of gold passages, and the cost of each type of vector index.

    python -m benchmarks.retrieval quality --data DIR --embedder onnx:DIR [--cache DIR]
    python -m benchmarks.retrieval indexes [--count 200000] [--dimension 384] [--types Flat,SQ8,...]

`quality`: recall@5, recall@10 and all-gold@5 of bm25, dense and hybrid retrieval with the whole question as the query,
over the corpora of the data sets. The cache folder keeps the vectors of passages, whose embedding takes minutes.

`indexes`: see `vector_indexes`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.vector_indexes import TYPES, indexes, one_type
from pyrag.cli.main import guarded
from pyrag.evaluation.datasets.layout import Question, find_file, read_questions
from pyrag.evaluation.metrics import support_recall
from pyrag.retrieval.bm25 import Bm25Retriever, index_of
from pyrag.retrieval.dense import DenseRetriever
from pyrag.retrieval.documents.reading import read_passages
from pyrag.retrieval.embedders.embedding import TextEmbedder, open_embedder
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever
from pyrag.retrieval.protocol import Retriever
from pyrag.retrieval.vectors.faiss_index import open_vectors
from pyrag.retrieval.vectors.folder import VectorFolder
from pyrag.trace.model import Passage

SETS = ("popqa", "hotpotqa", "2wikimultihopqa", "musique")


def quality(options: argparse.Namespace) -> None:
    print(f"embedder {options.embedder}; hybrid: reciprocal rank fusion, k = 10, depth 100, equal weights")
    print("| set | questions | passages | engine | recall@5 | recall@10 | all gold@5 |\n|---|---|---|---|---|---|---|")
    rows: dict[str, list[tuple[float, ...]]] = {}
    for name in options.sets.split(","):
        passages = list(read_passages([_set_file(options.data / name, "corpus")]))
        rows_of_set = read_questions(_set_file(options.data / name, "questions"))
        questions = [question for question in rows_of_set if question.supporting]
        for engine, scores in asyncio.run(_measure(name, passages, questions, options)).items():
            rows.setdefault(engine, []).append(scores)
            print(f"| {name} | {len(questions)} | {len(passages)} | {engine} | {_cells(scores)} |", flush=True)
    for engine, set_scores in rows.items():
        means = tuple(statistics.fmean(column) for column in zip(*set_scores, strict=True))
        print(f"| **mean** | | | {engine} | {_cells(means)} |")


def _set_file(folder: Path, stem: str) -> Path:
    path = find_file(folder, stem)
    if path is None:
        sys.exit(f"{folder} holds no {stem}.jsonl.gz: name the folder of the data sets with --data")
    return path


def _cells(scores: Sequence[float]) -> str:
    return " | ".join(f"{100 * score:.1f}" for score in scores)


async def _measure(
    name: str, passages: list[Passage], questions: list[Question], options: argparse.Namespace
) -> dict[str, tuple[float, ...]]:
    embedder = open_embedder(options.embedder)
    bm25 = index_of(passages)
    with tempfile.TemporaryDirectory() as folder:
        vectors = await _vectors(name, passages, embedder, options.cache)
        made = VectorFolder.create(folder, await embedder.fingerprint(), target=options.target)
        with made.writer() as writer:
            writer.add([passage.id for passage in passages], vectors)
            writer.commit()
        sparse, dense = Bm25Retriever(bm25), DenseRetriever(open_vectors(folder), embedder, bm25.passages)
        hybrid = HybridRetriever({"bm25": WeightedRetriever(sparse), "dense": WeightedRetriever(dense)})
        engines: dict[str, Retriever] = {"bm25": sparse, "dense": dense, "hybrid": hybrid}
        return {engine: await _scores(retriever, questions) for engine, retriever in engines.items()}


async def _scores(retriever: Retriever, questions: list[Question]) -> tuple[float, ...]:
    columns: list[tuple[float, float, float]] = []
    for start in range(0, len(questions), 32):
        some = questions[start : start + 32]
        lists = await asyncio.gather(*(retriever.retrieve(question.question, 10) for question in some))
        for question, passages in zip(some, lists, strict=True):
            ids = [passage.id for passage in passages]
            five, ten = (
                support_recall(set(ids[:depth]), question.supporting, question.supporting_alt) for depth in (5, 10)
            )
            columns.append((five, ten, float(five == 1)))
    return tuple(statistics.fmean(column) for column in zip(*columns, strict=True))


async def _vectors(name: str, passages: list[Passage], embedder: TextEmbedder, cache: Path | None) -> Any:
    texts = [passage_text(passage.title, passage.text) for passage in passages]
    digest = hashlib.blake2b(msgspec.json.encode(await embedder.fingerprint()), digest_size=8)
    for text in texts:
        digest.update(text.encode() + b"\0")
    path = cache / f"{name}-corpus-{digest.hexdigest()}.npy" if cache else None
    if path and path.exists():
        return np.load(path)
    print(f"embedding {len(texts)} passages of {name}", file=sys.stderr)
    vectors = await embedder.embed_passages(texts)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, vectors)
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    quality_parser = commands.add_parser("quality")
    quality_parser.add_argument("--data", type=Path, required=True)
    quality_parser.add_argument("--embedder", required=True)
    quality_parser.add_argument("--cache", type=Path)
    quality_parser.add_argument("--sets", default=",".join(SETS))
    for name in ("indexes", "one"):
        command = commands.add_parser(name)
        command.add_argument("--count", type=int, default=200_000)
        command.add_argument("--dimension", type=int, default=384)
        command.add_argument("--scratch", type=Path)
        command.add_argument("--type" if name == "one" else "--types", default=";".join(TYPES))
    for subparser in commands.choices.values():
        subparser.add_argument("--target", type=float, default=0.95)
    options = parser.parse_args()
    {"quality": quality, "indexes": indexes, "one": one_type}[options.command](options)


if __name__ == "__main__":
    guarded(main)
