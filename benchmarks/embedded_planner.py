"""Benchmark of the embedded planner on training questions, on its own and with retrieval and reader.

    python -m benchmarks.embedded_planner --data DIR [--half held] [--end-to-end pyrag]

`DIR` has the folders of the data sets with `train_questions.jsonl.gz`. A hash of its id assigns each question to the
half that rules are fitted on or to the half that judges them. The report counts questions:

    2Wiki       `parsed`: the relations are equal to the gold triples'; `oracle`: the program gives the gold answer if
                `answer` reads the gold triples
    MuSiQue     `hops`: as many sub-queries as the gold decomposition; `shape`: as many branches; `oracle`: the
                program gives the gold answer if `answer` reads the gold sub-answers, matched by word overlap
    HotpotQA    `planned`: split into sub-queries; `shape`: read as a comparison if and only if it is one
    SQuAD       `whole`: not split

`--end-to-end` adds exact match and F1 of the embedded engine over the training corpus.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from pyrag import PyRAG
from pyrag.cli.main import guarded
from pyrag.embedded.planner.meaning import Chain, Choice, Entity, Meaning, Node, RelationStep, Whole
from pyrag.embedded.planner.planner import parse
from pyrag.embedded.planner.program_text import sub_queries, write_program
from pyrag.embedded.relations.table import RELATIONS
from pyrag.evaluation.metrics import score_text, script_of
from pyrag.retrieval.bm25 import index_of
from pyrag.retrieval.index import update_index
from pyrag.trace.model import Passage
from pyrag_helpers import HELPERS
from pyrag_helpers.dates import parse_date
from pyrag_helpers.known import is_known

Question = dict[str, Any]

# Relations that the words of a question do not tell apart
_ALIKE = {
    "country of citizenship": "country", "country of origin": "country", "songwriter": "author",
    "student of": "doctoral advisor",
    "cast member": "performer", "production company": "publisher",
}  # fmt: skip
_ASKED = [
    (relation.name, re.compile(re.escape(relation.question).replace(r"\{x\}", "(.+)")))
    for relation in RELATIONS
    if relation.question
]


def load(path: Path) -> list[Question]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def in_half(question: Question, half: str) -> bool:
    """Return whether a question is in the half used to fit rules ("fit") or in the half used to judge them
    ("held").
    """
    even = int(hashlib.sha256(question["id"].encode()).hexdigest(), 16) % 2 == 0
    return half == "all" or even == (half == "fit")


def plain(text: str) -> str:
    text = re.sub(r"\([^)]*\)", " ", text.casefold())
    return " ".join(word for word in re.findall(r"\w+", text) if word not in ("the", "a", "an", "film", "song"))


def alike(relation: str) -> str:
    return _ALIKE.get(relation, relation)


def nodes(meaning: Meaning) -> Iterator[Node]:
    match meaning:
        case Chain(node):
            yield node
        case Choice(values=values):
            yield from (node for pair in values for node in pair)
        case Whole():
            return
        case _:
            yield from getattr(meaning, "values", ()) or getattr(meaning, "names", ())


def relations(node: Node) -> Iterator[str]:
    if isinstance(node, RelationStep):
        yield alike(node.relation.name if node.relation else "?")
        for arg in node.args:
            yield from relations(arg)


def names(node: Node) -> Iterator[str]:
    if isinstance(node, Entity):
        yield node.text
    else:
        for arg in node.args:
            yield from names(arg)


def parsed_right(question: Question, meaning: Meaning) -> bool:
    parsed = Counter(name for node in nodes(meaning) for name in relations(node))
    return parsed == Counter(alike(relation) for _, relation, _ in question["evidences"])


def branches(meaning: Meaning) -> int:
    """Count the steps that need no other step's answer."""

    def first(node: Node) -> set[RelationStep]:
        below = (
            [first(arg) for arg in node.args if isinstance(arg, RelationStep)] if isinstance(node, RelationStep) else []
        )
        return set().union(*below) if below else {node} if isinstance(node, RelationStep) else set()

    return len(set().union(*(first(node) for node in nodes(meaning)))) or 1


def triple_oracle(question: Question) -> Callable[..., str]:
    """Return an `answer` that looks up the gold triples. Subjects are matched by the words of their names."""

    def answer(query: str, docs: object = None) -> str:
        for name, pattern in _ASKED:
            match = pattern.fullmatch(query)
            values = [
                (_likeness(match[1], subject, question), str(value))
                for subject, relation, value in question["evidences"]
                if match and alike(relation) == alike(name)
            ]
            likeness, best = max(values, default=(0.0, ""))
            if likeness > 0:
                return best
        return "unknown"

    return answer


def _likeness(asked: str, subject: str, question: Question) -> float:
    """Return the similarity of a subject and the requested subject, which may be spelled differently."""
    left, right = set(plain(asked).split()), set(plain(subject).split())
    shared = len(left & right) / (len(left | right) or 1)
    followed = plain(asked) in {plain(value) for _, _, value in question["evidences"]}
    first = plain(subject) == plain(question["evidences"][0][0])
    return shared or (0.01 if followed and not first else 0.0)


def step_oracle(question: Question) -> Callable[..., str]:
    """Return an `answer` that looks up the gold sub-answer of the step with the largest word overlap."""
    steps = [(step["question"], step["answer"]) for step in question["decomposition"]]

    def resolve(text: str) -> set[str]:
        for number, (_, value) in enumerate(steps, start=1):
            text = text.replace(f"#{number}", value)
        return set(plain(text.replace(">>", " ")).split())

    def answer(query: str, docs: object = None) -> str:
        asked = set(plain(query).split())
        scores = [len(asked & resolve(text)) / (len(asked | resolve(text)) or 1) for text, _ in steps]
        return str(steps[scores.index(max(scores))][1]) if max(scores) > 0.15 else "unknown"

    return answer


def run(source: str, answer: Callable[..., str], retrieve: Callable[..., list[str]] = lambda *_, **__: []) -> str:
    """Run a program and return its answer. Our own planner wrote the program, so it needs no sandbox."""
    values: dict[str, Any] = {**HELPERS, "retrieve": retrieve, "answer": answer}
    exec(compile(source, "<program>", "exec"), values)  # noqa: S102
    return str(values["final_answer"])


def right(question: Question, answer: str) -> bool:
    gold = {plain(gold_answer) for gold_answer in question["answers"]}
    if plain(answer) in gold:
        return True
    try:
        return is_known(answer) and parse_date(answer) in [parse_date(gold) for gold in question["answers"]]
    except ValueError:
        return False


class Recall:
    """Gold passages found by the searches of programs, and by one search with the whole question."""

    def __init__(self, corpus: Path) -> None:
        self.index = index_of(Passage(row["id"], row["title"], row["text"]) for row in load(corpus))
        self.gold = self.found_by_program = self.found_by_question = 0

    def add(self, question: Question, source: str, answer: Callable[..., str]) -> None:
        ids: set[str] = set()

        def retrieve(query: str, topk: int = 5) -> list[str]:
            ids.update(passage.id for passage in self.index.search(query, topk))
            return []

        run(source, answer, retrieve)
        gold = set(question["supporting"])
        self.gold += len(gold)
        self.found_by_program += len(gold & ids)
        self.found_by_question += len(gold & {passage.id for passage in self.index.search(question["question"], 5)})

    def __str__(self) -> str:
        share, whole = self.found_by_program / max(self.gold, 1), self.found_by_question / max(self.gold, 1)
        return f"  recall of gold passages, 5 a search: {share:.1%} by program, {whole:.1%} by the whole question"


def report(
    title: str, questions: list[Question], score: Callable[[Question, Meaning], dict[str, bool]], show: int
) -> None:
    totals: dict[str, Counter[str]] = {}
    started = time.perf_counter()
    shown = 0
    for question in questions:
        meaning = parse(question["question"])
        source = write_program(question["question"], meaning)
        marks = score(question, meaning)
        kind = totals.setdefault(question.get("type", "single"), Counter())
        kind.update({"n": 1, **{mark: int(good) for mark, good in marks.items()}})
        if not all(marks.values()) and shown < show:
            shown += 1
            print(
                f"  {question.get('type', 'single')}: {question['question']}\n   "
                f" {sub_queries(question['question'], meaning)}\n{source}"
            )
    took = (time.perf_counter() - started) / max(len(questions), 1)
    print(f"{title}: {len(questions)} questions, {1000 * took:.2f} ms each, scoring included")
    for name, counts in sorted(totals.items()):
        print(f"  {name:20}", "  ".join(f"{mark} {number}" for mark, number in counts.items()))


def score_triples(question: Question, meaning: Meaning) -> dict[str, bool]:
    answer = run(write_program(question["question"], meaning), triple_oracle(question))
    return {"parsed": parsed_right(question, meaning), "oracle": right(question, answer)}


def score_steps(question: Question, meaning: Meaning) -> dict[str, bool]:
    answer = run(write_program(question["question"], meaning), step_oracle(question))
    hops = len(sub_queries(question["question"], meaning))
    return {
        "planned": hops > 1,
        "hops": hops == len(question["decomposition"]),
        "shape": branches(meaning) == sum("#" not in step["question"] for step in question["decomposition"]),
        "oracle": hops > 1 and right(question, answer),
    }


def score_shape(question: Question, meaning: Meaning) -> dict[str, bool]:
    compared = not isinstance(meaning, Chain | Whole)
    return {
        "planned": not isinstance(meaning, Whole),
        "shape": not isinstance(meaning, Whole) and compared == (question["type"] == "comparison"),
    }


def score_single(question: Question, meaning: Meaning) -> dict[str, bool]:
    return {"whole": isinstance(meaning, Whole)}


async def end_to_end(questions: list[Question], corpus: Path, method: str, name: str) -> None:
    """Print exact match and F1 by type of question, with BM25 over the corpus."""
    scores: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        update_index([corpus], Path(scratch) / "index")
        async with PyRAG("embedded", retriever=Path(scratch) / "index", method=method) as rag:
            position = 0
            async for trace in rag.aask_many(question["question"] for question in questions):
                question, position = questions[position], position + 1
                text = trace.answer.text if trace.answer.known else ""
                em, f1 = score_text(text, question["answers"], script_of(name))[:2]
                scores.setdefault(question.get("type", "single"), []).append((em, f1))
    scores = {**dict(sorted(scores.items())), "all": [pair for pairs in scores.values() for pair in pairs]}
    for kind, pairs in scores.items():
        em, f1 = (100 * fmean(column) for column in zip(*pairs, strict=True))
        print(f"  {method}, {kind:20} n {len(pairs)}  EM {em:.1f}  F1 {f1:.1f}")


ORACLES: dict[str, Callable[[Question], Callable[..., str]]] = {
    "2wikimultihopqa": triple_oracle,
    "musique": step_oracle,
}
SCORES = {
    "2wikimultihopqa": score_triples,
    "musique": score_steps,
    "hotpotqa": score_shape,
    "squad": score_single,
}


def report_set(name: str, folder: Path, options: argparse.Namespace) -> None:
    questions = [question for question in load(folder / "train_questions.jsonl.gz") if question["answers"]]
    questions = [question for question in questions if in_half(question, options.half)]
    report(name, questions, SCORES[name], options.show)
    corpus = folder / "train_corpus.jsonl.gz"
    if name in ORACLES and corpus.exists():
        recall = Recall(corpus)
        for question in questions:
            source = write_program(question["question"], parse(question["question"]))
            recall.add(question, source, ORACLES[name](question))
        print(recall)
    if options.end_to_end and corpus.exists():
        asyncio.run(end_to_end(questions[: options.limit], corpus, options.end_to_end, name))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--show", type=int, default=0, metavar="N", help="print the first N questions gone wrong")
    arguments.add_argument("--only", choices=SCORES)
    arguments.add_argument("--half", choices=("fit", "held", "all"), default="all", help="default: all")
    arguments.add_argument("--end-to-end", metavar="METHOD", help="also answer the questions, by pyrag, opera, …")
    arguments.add_argument("--limit", type=int, default=200, metavar="N", help="of them at most N a set (default 200)")
    options = arguments.parse_args()
    for name in SCORES:
        folder = options.data / name
        if options.only not in (None, name):
            continue
        if (folder / "train_questions.jsonl.gz").exists():
            report_set(name, folder, options)
        else:
            print(f"{name}: not run, {folder / 'train_questions.jsonl.gz'} does not exist")


if __name__ == "__main__":
    guarded(main)
