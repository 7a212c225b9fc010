"""Benchmark of the embedded reader on sub-questions of training data: exact match, F1 and unknown answers.

It only reads `train_*` files, because thresholds and patterns are tuned on its results. Run `python -m
benchmarks.embedded_reader --data DIR`. Passages are the gold passages, the best five or ten of BM25, and the best five
without gold passages. Sub-questions come from 2Wiki's triples and MuSiQue's decompositions.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from pyrag.agents.protocol import Reading
from pyrag.cli.main import guarded
from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
from pyrag.evaluation.metrics import exact_match, f1, normalise
from pyrag.trace.model import Passage

WORDINGS: dict[str, tuple[str, ...]] = {
    "director": ("Who directed {}?", "Who is the director of {}?", "Who is the director of the film {}?"),
    "country of citizenship": (
        "What is the nationality of {}?",
        "What nationality is {}?",
        "What is {}'s nationality?",
    ),
    "date of birth": ("When was {} born?", "What is the date of birth of {}?"),
    "date of death": ("When did {} die?", "What is the date of death of {}?"),
    "place of birth": ("Where was {} born?", "What is the place of birth of {}?"),
    "place of death": ("Where did {} die?", "What is the place of death of {}?"),
    "cause of death": ("What was the cause of death of {}?", "How did {} die?"),
    "country": ("In which country is {} located?", "What country is {} in?"),
    "country of origin": ("What is the country of origin of {}?", "Which country is {} from?"),
    "father": ("Who is the father of {}?", "Who was {}'s father?"),
    "mother": ("Who is the mother of {}?", "Who was {}'s mother?"),
    "spouse": ("Who is the spouse of {}?", "Who did {} marry?", "Who was {}'s spouse?"),
    "child": ("Who is the child of {}?", "Who is {}'s child?"),
    "sibling": ("Who is the sibling of {}?", "Who is {}'s sibling?"),
    "performer": ("Who performed {}?", "Who is the performer of the song {}?"),
    "composer": ("Who composed the music of {}?", "Who is the composer of {}?"),
    "publication date": ("When was {} released?", "What is the publication date of {}?"),
    "award received": ("Which award did {} receive?", "What award did {} win?"),
    "educated at": ("Where was {} educated?", "Where did {} study?"),
    "founded by": ("Who founded {}?", "Who is the founder of {}?"),
    "publisher": ("Who is the publisher of {}?",),
    "inception": ("When was {} founded?",),
    "employer": ("Where does {} work?", "Who is the employer of {}?"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """Question with its gold answers. Figures are reported by `group`."""

    group: str
    question: str
    answers: tuple[str, ...]
    gold: str  # id of the passage that holds the answer


def load(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Corpus:
    """A BM25 index in memory over one training corpus."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = {str(row["id"]): Passage(str(row["id"]), row["title"], row["text"]) for row in rows}
        self.by_title = {passage.title: passage.id for passage in self.rows.values()}
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("body", tokenizer_name="en_stem")
        self.index = tantivy.Index(builder.build())
        writer = self.index.writer(heap_size=64_000_000, num_threads=1)
        for passage in self.rows.values():
            writer.add_document(tantivy.Document(id=passage.id, body=f"{passage.title} {passage.text}"))
        writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def search(self, query: str, topk: int) -> list[Passage]:
        words = " ".join(re.findall(r"\w+", query.lower()))
        parsed = self.index.parse_query(words, ["body"])
        hits = self.searcher.search(parsed, topk).hits
        return [self.rows[self.searcher.doc(address)["id"][0]] for _, address in hits]


def two_wiki(folder: Path) -> tuple[list[Item], Corpus]:
    corpus = Corpus(load(folder / "train_corpus.jsonl.gz"))
    items: dict[str, Item] = {}
    for row in load(folder / "train_questions.jsonl.gz"):
        texts = [corpus.rows[passage] for passage in row["supporting"]]
        for subject, relation, value in row["evidences"]:
            gold = next((p.id for p in texts if p.title == subject), "") or _holder(texts, subject, value)
            wording = WORDINGS[relation][len(items) % len(WORDINGS[relation])]
            if gold:
                items.setdefault(subject + relation, Item(relation, wording.format(subject), (value,), gold))
    return list(items.values()), corpus


def _holder(texts: Sequence[Passage], subject: str, value: str) -> str:
    fitting = [p for p in texts if value.lower() in p.text.lower()]
    return max(fitting, key=lambda p: len(set(p.title.split()) & set(subject.split())), default=Passage("", "", "")).id


def musique(folder: Path) -> tuple[list[Item], Corpus]:
    corpus = Corpus(load(folder / "train_corpus.jsonl.gz"))
    items: dict[str, Item] = {}
    for row in load(folder / "train_questions.jsonl.gz"):
        earlier: list[str] = []
        for step in row["decomposition"]:
            question = step["question"]
            for number, answer in enumerate(earlier, start=1):
                question = re.sub(rf"#{number}\s?", answer.replace("\\", r"\\") + " ", question)
            question = question.strip()
            group = "X >> rel" if ">>" in question else "natural"
            items.setdefault(question, Item(group, question, (step["answer"],), step["supporting"]))
            earlier.append(step["answer"])
    return list(items.values()), corpus


def squad(folder: Path, count: int) -> tuple[list[Item], Corpus]:
    corpus = Corpus(load(folder / "train_full_corpus.jsonl.gz"))
    rows = load(folder / "train_full_questions.jsonl.gz")
    sample = random.Random(11).sample(rows, count)  # noqa: S311 - a fixed sample, no secret
    return [Item("squad", r["question"], tuple(r["answers"]), r["supporting"][0]) for r in sample], corpus


def hotpot(folder: Path) -> tuple[list[Item], Corpus]:
    corpus = Corpus(load(folder / "train_corpus.jsonl.gz"))
    rows = load(folder / "train_questions.jsonl.gz")
    return [Item("whole", r["question"], tuple(r["answers"]), "|".join(r["supporting"])) for r in rows], corpus


def passages_of(mode: str, item: Item, corpus: Corpus) -> list[Passage]:
    gold = item.gold.split("|")
    if mode == "gold":
        return [corpus.rows[g] for g in gold]
    passages = corpus.search(item.question, 12 if mode == "top10" else 7)
    if mode == "no gold":
        return [p for p in passages if p.id not in gold and not _answers(p, item)][:5]
    return passages[: 10 if mode == "top10" else 5]


def _answers(passage: Passage, item: Item) -> bool:
    return any(normalise(a) in normalise(passage.text) for a in item.answers) and any(
        passage.title.lower().split("(")[0].strip() in text for text in (item.question.lower(),)
    )


@dataclass(slots=True)
class Tally:
    """Running totals of a group."""

    count: int = 0
    em: float = 0.0
    f1: float = 0.0
    known: int = 0

    def line(self, name: str) -> str:
        n = max(self.count, 1)
        right = 100 * self.em / max(self.known, 1)
        shares = f"EM {100 * self.em / n:5.1f}  F1 {100 * self.f1 / n:5.1f}  known {100 * self.known / n:5.1f}"
        return f"  {name:26s} n={self.count:<5d} {shares}  EM of known {right:5.1f}"


def report(name: str, mode: str, item: Item, reading: Reading, corpus: Corpus) -> dict[str, Any]:
    """Return a line of the error file."""
    return {
        "set": name,
        "mode": mode,
        "group": item.group,
        "question": item.question,
        "answers": item.answers,
        "said": reading.text,
        "confidence": reading.confidence,
        "why": reading.rationale,
        "gold": [[corpus.rows[gold].title, corpus.rows[gold].text] for gold in item.gold.split("|")],
    }


def evaluate(name: str, items: Sequence[Item], corpus: Corpus, errors: list[dict[str, Any]], groups: bool) -> None:
    reader = NeuralAnswerer()
    for mode in ("gold", "top5", "top10", "no gold"):
        tallies: dict[str, Tally] = defaultdict(Tally)
        spent = 0.0
        for item in items:
            passages = passages_of(mode, item, corpus)
            start = time.process_time()
            reading = asyncio.run(reader.answer(item.question, passages))
            spent += time.process_time() - start
            score = exact_match(reading.text, item.answers) if reading.known else 0.0
            for group in ("all", item.group):
                tally = tallies[group]
                tally.count += 1
                tally.em += score
                tally.f1 += f1(reading.text, item.answers) if reading.known else 0.0
                tally.known += reading.known
            if score < 1 or mode == "no gold":
                errors.append(report(name, mode, item, reading, corpus))
        print(f"{name}, {mode} ({1000 * spent / max(len(items), 1):.1f} ms a question)")
        for group, tally in sorted(tallies.items(), key=lambda entry: -entry[1].count):
            if group == "all" or (groups and mode in ("gold", "top5")):
                print(tally.line(group))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--sets", default="2wiki,musique,squad,hotpotqa")
    parser.add_argument("--squad", type=int, default=600, help="questions to sample from SQuAD")
    parser.add_argument("--errors", type=Path, help="write wrong answers there, one JSON object a line")
    parser.add_argument("--brief", action="store_true", help="no figures per relation")
    arguments = parser.parse_args()
    loaders = {
        "2wiki": lambda: two_wiki(arguments.data / "2wikimultihopqa"),
        "musique": lambda: musique(arguments.data / "musique"),
        "squad": lambda: squad(arguments.data / "squad", arguments.squad),
        "hotpotqa": lambda: hotpot(arguments.data / "hotpotqa"),
    }
    errors: list[dict[str, Any]] = []
    for name in arguments.sets.split(","):
        items, corpus = loaders[name]()
        evaluate(name, items, corpus, errors, not arguments.brief)
    if arguments.errors:
        arguments.errors.write_text("".join(json.dumps(error, ensure_ascii=False) + "\n" for error in errors))


if __name__ == "__main__":
    guarded(main)
