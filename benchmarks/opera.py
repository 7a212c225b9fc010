"""OPERA and PyRAG under each recovery ladder, OPERA's ablations, and top-k scaling: what each brings and costs.

    python -m benchmarks.opera --data ../shared/data --sets 2wikimultihopqa musique --parts ladders ablations topk

Indexes are built in a temporary folder from each set's corpus. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pyrag import PyRAG
from pyrag.evaluation.datasets import Question, find_file, read_questions
from pyrag.evaluation.metrics import score_text, script_of
from pyrag.evaluation.opera import Outcome, agent_stats, agents_table, ladder_table, noise
from pyrag.evaluation.provenance import commit
from pyrag.evaluation.tables import Table
from pyrag.methods.opera import VARIANTS
from pyrag.retrieval.index import update_index

LADDERS = ("none", "boost", "rewrite", "boost+rewrite")
TOPKS = (3, 5, 10, 15, 20)


@dataclass(frozen=True, slots=True)
class Bench:
    """One set under one engine."""

    name: str
    index: Path
    questions: list[Question]
    llm: str
    concurrency: int

    def outcomes(self, **settings: Any) -> list[Outcome]:
        return asyncio.run(self._outcomes(settings))

    async def _outcomes(self, settings: dict[str, Any]) -> list[Outcome]:
        found: list[Outcome] = []
        async with PyRAG(self.llm, retriever=self.index, **settings) as rag:
            traces = rag.aask_many((one.question for one in self.questions), concurrency=self.concurrency)
            async for trace in traces:
                question = self.questions[len(found)]
                text = trace.answer.text if trace.answer.known else ""
                found.append(Outcome(question, trace, score_text(text, question.answers, script_of(self.name))[0]))
        return found


def ladders(bench: Bench) -> Table:
    named = [(method, recovery) for method in ("pyrag", "opera") for recovery in LADDERS]
    return ladder_table(
        (f"{method}, {recovery}", agent_stats(bench.outcomes(method=method, recovery=recovery)))
        for method, recovery in named
    )


def ablations(bench: Bench) -> Table:
    """The paper's table 2 (modules), with its table 12."""
    names = [f"opera:{one}" for one in VARIANTS]
    return agents_table((name, agent_stats(bench.outcomes(method=name))) for name in names)


def depth(bench: Bench) -> Table:
    """Searches planned by the hops of a question, and what planning costs: calls with the plan and without."""
    full, flat = (agent_stats(bench.outcomes(method=f"opera:{one}")) for one in ("full", "no-plan"))
    rows = [(str(hops), f"{searches:.2f}") for hops, searches in full.depth.items()]
    more = [("calls with, without a plan", f"{full.calls:.2f}, {flat.calls:.2f}")]
    return Table(("hops", "searches"), [*rows, *more])


def topk(bench: Bench) -> Table:
    """The paper's table 10: retrieval and Analysis-Answer agent alone."""
    rows = []
    for k in TOPKS:
        outcomes = bench.outcomes(method="opera:no-plan-no-rewrite", topk=k)
        shares = [share for one in outcomes if (share := noise(one.question, one.trace)) is not None]
        shown = f"{fmean(shares):.2f}" if shares else "–"
        rows.append((str(k), f"{100 * fmean(one.em for one in outcomes):.1f}", shown))
    return Table(("top-k", "EM", "noise"), rows)


PARTS = {"ladders": ladders, "ablations": ablations, "depth": depth, "topk": topk}


def benches(options: argparse.Namespace, scratch: Path) -> Iterator[Bench]:
    prefix = "train_" if options.train else ""
    for name in options.sets:
        corpus = find_file(options.data / name, f"{prefix}corpus")
        asked = find_file(options.data / name, f"{prefix}questions")
        if corpus is None or asked is None:
            print(f"\n{name}: no {prefix}corpus or {prefix}questions, left out")
            continue
        update_index([corpus], scratch / name)
        questions = [one for one in read_questions(asked) if one.answerable][: options.limit]
        yield Bench(name, scratch / name, questions, options.llm, options.concurrency)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of sets in the common layout")
    parser.add_argument("--sets", nargs="+", default=["2wikimultihopqa", "musique", "hotpotqa", "popqa", "multihoprag"])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=["ladders"])
    parser.add_argument("--llm", default="embedded")
    parser.add_argument("--train", action="store_true", help="the training questions over their own corpus")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--concurrency", type=int, default=2)
    options = parser.parse_args()
    print(f"engine {options.llm} · BM25 over each set's corpus · commit {commit()}")
    with tempfile.TemporaryDirectory() as scratch:
        for bench in benches(options, Path(scratch)):
            for part in options.parts:
                print(
                    f"\n### {bench.name}, {part}, {len(bench.questions)} questions\n\n{PARTS[part](bench)}", flush=True
                )


if __name__ == "__main__":
    main()
