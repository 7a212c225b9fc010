"""Two tasks small enough for a tiny model, over the bundled corpus: eight questions to answer, six to program.

Before reinforcement learning the model is taught the form, and what to choose from: each question with four answers of
which one is right, or with four programs of which one runs. What is left to learn is which one is rewarded. Prompts
are the package's templates cut short: a model of a hundred thousand weights reads no pages.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pyrag.embedded import embedded_agents
from pyrag.llm.protocol import Message
from pyrag.retrieval.bundled import bundled_passages
from pyrag_rl.data.rows import Document, TrainRow, write_rows
from pyrag_rl.prompting import prompt_of

_CHOICES = 4
_SHORT = {
    "answer.evidence.system": "You are the Answer Agent.",
    "answer.evidence.user": "{{documents}}\n{{query}}",
    "plan.system": "You are the Plan Agent.",
    "plan.user": "{{question}}\n{{sub_queries}}",
}
# Passage, question, gold spellings: single facts of the bundled corpus.
_FACTS = (
    ("fenway-park", "Fenway Park is the ballpark of which team?", ("Boston Red Sox",)),
    ("ingmar-bergman", "In which city was Ingmar Bergman born?", ("Uppsala",)),
    ("the-seventh-seal", "Who directed The Seventh Seal?", ("Ingmar Bergman",)),
    ("wrigley-field", "Which team plays at Wrigley Field?", ("Chicago Cubs",)),
    ("phil-knight", "Which company did Phil Knight start?", ("Nike",)),
    ("aldous-huxley", "What did Aldous Huxley write?", ("Brave New World",)),
    ("babe-ruth", "What was the first name of Babe Ruth?", ("George",)),
    ("c-s-lewis", "Where was C. S. Lewis born?", ("Belfast",)),
)
# Question, gold, and the queries of a program that finds it: one, or two of which the second needs the first's answer.
PROGRAMMED = (
    ("When did Fenway Park open?", ("20 April 1912", "April 20, 1912", "1912"), ("When did Fenway Park open?",)),
    ("In which city was Ingmar Bergman born?", ("Uppsala",), ("In which city was Ingmar Bergman born?",)),
    ("Who directed The Seventh Seal?", ("Ingmar Bergman",), ("Who directed The Seventh Seal?",)),
    (
        "In which city was the director of The Seventh Seal born?",
        ("Uppsala",),
        ("Who directed The Seventh Seal?", "In which city was {first} born?"),
    ),
    (
        "Which country is the director of Pan's Labyrinth from?",
        ("Mexico", "Mexican"),
        ("Who directed Pan's Labyrinth?", "Which country is {first} from?"),
    ),
    (
        "In which city was the director of Lawrence of Arabia born?",
        ("Croydon",),
        ("Who directed Lawrence of Arabia?", "In which city was {first} born?"),
    ),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A training set, what the model is taught before, the prompts folder, and the texts that its tokenizer knows."""

    data: Path
    lessons: Sequence[tuple[Sequence[Message], str]]
    prompts: Path
    texts: Sequence[str]


def answer_task(folder: Path) -> Task:
    prompts = _prompts(folder)
    passages = {passage.id: passage for passage in bundled_passages()}
    rows = []
    for index, (passage, question, golds) in enumerate(_FACTS):
        found = passages[passage]
        document = Document(id=found.id, title=found.title, text="")
        messages = asyncio.run(
            prompt_of(lambda agents, q=question, d=document: agents.answerer.answer(q, [d.passage()]), str(prompts))
        )
        row = TrainRow(
            index=index, id=passage, agent="answer", source="bundled", question=question, answers=golds,
            messages=messages, documents=(document,),
        )  # fmt: skip
        rows.append(row)
    replies = [f"<answer>{golds[0]}</answer>" for _, _, golds in _FACTS]
    lessons = [(row, replies[(row.index + other) % len(rows)]) for row in rows for other in range(_CHOICES)]
    return _task(folder, rows, lessons, prompts)


def plan_task(folder: Path, *, faults: int = 3) -> Task:
    """`faults` of three kinds are taught beside a program that runs."""
    prompts, decomposer = _prompts(folder), embedded_agents("embedded").decomposer
    rows, lessons = [], []
    for index, (question, golds, queries) in enumerate(PROGRAMMED):
        subs = asyncio.run(decomposer.decompose(question)).sub_queries
        messages = asyncio.run(prompt_of(lambda agents, q=question, s=subs: agents.planner.plan(q, s), str(prompts)))
        row = TrainRow(
            index=index, id=f"program-{index}", agent="plan", source="bundled", question=question, answers=golds,
            messages=messages, sub_queries=subs,
        )  # fmt: skip
        rows.append(row)
        lessons += [(row, fenced(program)) for program in (good(queries), *faulty(queries)[:faults])]
    return _task(folder, rows, lessons, prompts)


def good(queries: Sequence[str]) -> str:
    """A program that answers the last query."""
    lines = [f'first = answer("{queries[0]}", retrieve("{queries[0]}"))']
    lines += [f'second = answer(f"{query}", retrieve(f"{query}"))' for query in queries[1:]]
    return "\n".join([*lines, f"final_answer = {'second' if queries[1:] else 'first'}"])


def faulty(queries: Sequence[str]) -> list[str]:
    """The same program with a fault of each kind that a reward has a name for."""
    whole = good(queries)
    last = whole.splitlines()[-1]
    return [
        whole.replace(last, last.replace("= ", "= the ")),  # a syntax error
        whole.replace(last, "final_answer = third"),  # a NameError
        whole.replace(f"\n{last}", ""),  # no final answer
    ]


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


def _prompts(folder: Path) -> Path:
    place = folder / "prompts"
    shutil.copytree(str(files("pyrag_prompts")), place, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name, text in _SHORT.items():
        (place / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    return place


def _task(folder: Path, rows: list[TrainRow], lessons: list[tuple[TrainRow, str]], prompts: Path) -> Task:
    data = folder / "train.parquet"
    write_rows(data, rows)
    texts = [message.content for row in rows for message in row.messages] + [reply for _, reply in lessons]
    return Task(data, [(row.messages, reply) for row, reply in lessons], prompts, texts * 4)
