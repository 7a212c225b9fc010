"""Benchmark of an index of a million passages: time, memory and disk space of building, searching and updating it.

    python -m benchmarks.index_scale [--passages 1000000] [--files 100] [--folder /tmp/index-scale]

Passages have 60 to 120 random words of a Zipf distribution over 200,000. Each step runs in its own process, whose peak
memory is reported; the first query therefore runs in a new process, but not from a cold disk.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyrag.cli.main import guarded
from pyrag.retrieval.index import open_index, update_index
from pyrag.retrieval.indexing.verify import verify_index

VOCABULARY = 200_000
QUERIES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/index-scale"))  # noqa: S108
    parser.add_argument("--step", choices=STEPS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps({**STEPS[options.step](options.folder), **_used()}))
        return
    write_corpus(options.folder / "corpus", options.passages, options.files)
    for step in STEPS:
        if step == "change":
            _change_one_line(options.folder / "corpus")
        command = [sys.executable, "-m", "benchmarks.index_scale", "--folder", str(options.folder), "--step", step]
        print(step, subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), flush=True)


def write_corpus(folder: Path, passages: int, files: int) -> None:
    """Write the passages unless the folder exists. The same arguments give the same passages."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    random.seed(7)
    words = [f"{word:x}ing" if word % 3 else f"{word:x}" for word in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    stream: Iterator[str] = iter(())
    for number in range(files):
        with (folder / f"part-{number:03}.jsonl").open("w") as file:
            for row in range(number * passages // files, (number + 1) * passages // files):
                if not row % 1000:
                    stream = iter(random.choices(words, weights, k=125_000))  # noqa: S311
                text = " ".join(next(stream) for _ in range(random.randint(60, 120)))  # noqa: S311
                file.write(json.dumps({"id": f"p{row}", "title": f"Page {row % 50_000:x}", "text": text}) + "\n")


def _change_one_line(folder: Path) -> None:
    path = folder / "part-000.jsonl"
    first, rest = path.read_text().split("\n", 1)
    record = json.loads(first)
    record["text"] += " changed"
    path.write_text(json.dumps(record) + "\n" + rest)


def _update(folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    built = update_index([folder / "corpus"], folder / "index")
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in (folder / "index").rglob("*") if path.is_file())
    corpus = sum(path.stat().st_size for path in (folder / "corpus").iterdir())
    return {
        "seconds": round(seconds, 1),
        "passages": built.info.passages,
        "passages_per_second": round(built.info.passages / seconds),
        "changed": built.added + built.changed + built.removed,
        "files_read": built.files_read,
        "index_mb": round(size / 1e6),
        "corpus_mb": round(corpus / 1e6),
    }


def _search(folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    index = open_index(folder / "index")
    index.search("c0ffee page 11", 10)
    first = time.perf_counter() - started
    random.seed(11)
    with (folder / "corpus" / "part-001.jsonl").open() as file:
        texts = [json.loads(next(file))["text"].split() for _ in range(QUERIES)]
    queries = [" ".join(random.sample(words, 8)) for words in texts]
    spent = []
    for query in queries:
        begin = time.perf_counter()
        index.search(query, 10)
        spent.append(time.perf_counter() - begin)
    spent.sort()
    return {
        "first_query_ms": round(first * 1000, 1),
        "queries_per_second": round(QUERIES / sum(spent)),
        "median_ms": round(spent[QUERIES // 2] * 1000, 2),
        "p99_ms": round(spent[QUERIES * 99 // 100] * 1000, 2),
    }


def _verify(folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    problems = verify_index(folder / "index").problems
    return {"seconds": round(time.perf_counter() - started, 1), "problems": len(problems)}


def _used() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "peak_mb": round(used.ru_maxrss / 1024)}


STEPS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "build": _update,
    "search": _search,
    "nothing": _update,
    "change": _update,
    "verify": _verify,
}

if __name__ == "__main__":
    guarded(main)
