"""Benchmark of OPERA and PyRAG: recovery ladders, OPERA's ablations, depth of plans, and top-k, with their costs.

    python -m benchmarks.opera --data ../shared/data --sets 2wikimultihopqa musique --parts ladders ablations topk
    python -m benchmarks.opera --data ../shared/data --sets nq hover --corpus a.jsonl.gz b.jsonl.gz --parts reach depth

Sets without a corpus of their own are asked over all files of `--corpus` together. Indexes are built in a temporary
folder. Output is Markdown.
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
from pyrag.cli.main import guarded
from pyrag.evaluation.agent_behaviour import (
    AnsweredQuestion,
    agent_stats,
    depths,
    noise,
)
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.datasets.suite import PassageOptions, Source, open_set, source_of
from pyrag.evaluation.metrics import is_claim, normalise, score_text, script_of
from pyrag.evaluation.reports.tables import agents_table, depth_table, ladder_table
from pyrag.evaluation.reports.writer import Table
from pyrag.evaluation.runs.provenance import commit
from pyrag.evaluation.scoring import asked
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.method import VARIANTS
from pyrag.retrieval.documents.reading import read_passages

LADDERS = ("none", "boost", "rewrite", "boost+rewrite")
TOPKS = (3, 5, 10, 15, 20)


@dataclass(frozen=True, slots=True)
class Bench:
    """Question set with an engine."""

    name: str
    source: Source
    questions: list[Question]
    llm: str
    concurrency: int

    def outcomes(self, **settings: Any) -> list[AnsweredQuestion]:
        return asyncio.run(self._outcomes(settings))

    async def _outcomes(self, settings: dict[str, Any]) -> list[AnsweredQuestion]:
        outcomes: list[AnsweredQuestion] = []
        async with PyRAG(self.llm, retriever=self.source.index, **settings) as rag:
            async for trace in rag.aask_many(map(asked, self.questions), concurrency=self.concurrency):
                question = self.questions[len(outcomes)]
                text = trace.answer.text if trace.answer.known else ""
                outcomes.append(
                    AnsweredQuestion(question, trace, score_text(text, question.answers, script_of(self.name))[0])
                )
        return outcomes


def ladders(bench: Bench) -> Table:
    named = [(method, recovery) for method in ("pyrag", "opera") for recovery in LADDERS]
    return ladder_table(
        (f"{method}, {recovery}", agent_stats(bench.outcomes(method=method, recovery=recovery)))
        for method, recovery in named
    )


def ablations(bench: Bench) -> Table:
    """Return the paper's table 2 (modules), with the figures of its table 12."""
    names = [f"opera:{variant}" for variant in VARIANTS]
    return agents_table((name, agent_stats(bench.outcomes(method=name))) for name in names)


def depth(bench: Bench) -> Table:
    """Return the depth of plans by the hops of a question. `ablations` shows the calls with and without a planner."""
    return depth_table(depths(asyncio.run(_planned(bench))))


async def _planned(bench: Bench) -> list[tuple[int, int]]:
    async with PyRAG(bench.llm) as rag:
        team = rag.engines.agents.team(opera_agents)
        assert team is not None
        plans = [await team.goal_planner.plan(asked(question)) for question in bench.questions]
    searches = [sum(bool(goal.search) for goal in plan.goals) for plan in plans]
    return list(zip((question.hops for question in bench.questions), searches, strict=True))


def topk(bench: Bench) -> Table:
    """Return the paper's table 10: retrieval with only the Analysis-Answer agent."""
    rows = []
    for k in TOPKS:
        outcomes = bench.outcomes(method="opera:no-plan-no-rewrite", topk=k)
        shares = [share for outcome in outcomes if (share := noise(outcome.question, outcome.trace)) is not None]
        cell = f"{fmean(shares):.2f}" if shares else "–"
        rows.append((str(k), f"{100 * fmean(outcome.em for outcome in outcomes):.1f}", cell))
    return Table(("top-k", "EM", "noise"), rows)


def reach(bench: Bench) -> str:
    """Return an upper bound: the share of questions with a gold answer in the corpus (for claims, all gold titles)."""
    passages = list(read_passages(bench.source.corpora))
    titles = {passage.title for passage in passages}
    texts = [f" {normalise(f'{passage.title} {passage.text}')} " for passage in passages]
    holding: dict[str, set[int]] = {}
    for place, text in enumerate(texts):
        for word in text.split():
            holding.setdefault(word, set()).add(place)

    def stands(gold: str) -> bool:
        phrase = normalise(gold)
        places = [holding.get(word, set()) for word in phrase.split()]
        return any(f" {phrase} " in texts[place] for place in (set.intersection(*places) if places else ()))

    def there(question: Question) -> bool:
        if is_claim(question.answers):
            return titles.issuperset(question.supporting_titles)
        return any(map(stands, question.answers))

    return f"within reach: {100 * fmean(map(there, bench.questions)):.1f} % over {len(passages):,} passages"


PARTS = {"ladders": ladders, "ablations": ablations, "depth": depth, "topk": topk, "reach": reach}


def benches(options: argparse.Namespace, scratch: Path) -> Iterator[Bench]:
    corpora = PassageOptions(tuple(options.corpus), cache=scratch)
    split = "train" if options.train else ""
    for name in options.sets:
        chosen = open_set(name, options.data, split=split, limit=options.limit, seed=options.seed)
        questions = [question for question in chosen.questions if question.answerable]
        yield Bench(name, source_of(chosen, corpora), questions, options.llm, options.concurrency)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of sets in the common layout")
    parser.add_argument("--sets", nargs="+", default=["2wikimultihopqa", "musique", "hotpotqa", "popqa", "multihoprag"])
    parser.add_argument("--corpus", nargs="+", type=Path, default=[], help="passages for the sets without a corpus")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=["ladders"])
    parser.add_argument("--llm", default="embedded")
    parser.add_argument("--train", action="store_true", help="the training questions over their own corpus")
    parser.add_argument("--limit", type=int, default=None, help="questions a set: a sample drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
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
    guarded(main)
