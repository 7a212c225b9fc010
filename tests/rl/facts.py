"""A data set of single facts with a retriever server over it, and a tiny model taught what its agents reply.

Every fact is asked in two ways, one to train on and one to measure. The model is taught both beforehand, right replies
four times as often as wrong ones: a hundred thousand weights do not generalise, but they can prefer. Two facts are
asked by a byname, for which the search finds another page, until the query is rewritten. Prompts are the package's
cut short.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pyrag.evaluation.datasets.suite import PassageOptions
from pyrag.llm.protocol import Message
from pyrag.settings import Settings
from pyrag_rl.data.build import Request, build
from pyrag_rl.data.rows import TrainRow, read_rows
from tests.rl import tiny

PYRAG = [sys.executable, "-c", "from pyrag.cli.main import main; main()"]
NAME = "facts"
SERVER = "serve-retriever"
RIGHT = 4  # lessons of the right reply for one of a wrong one
Lesson = tuple[Sequence[Message], str]


@dataclass(frozen=True, slots=True)
class Fact:
    """`search` is what finds the page where the question does not; `decoy` is the page that it finds instead."""

    title: str
    text: str
    trained: str
    measured: str
    answer: str
    search: str = ""
    decoy: tuple[str, str] = ("", "")


FACTS = (
    Fact("Fenway Park", "Home to the Boston Red Sox.", "Who plays at Fenway Park?", "Fenway Park is home to whom?",
         "Boston Red Sox"),
    Fact("Ingmar Bergman", "He came from Uppsala.", "Where was Ingmar Bergman born?", "Ingmar Bergman is from where?",
         "Uppsala"),
    Fact("Wrigley Field", "Home to the Chicago Cubs.", "Who plays at Wrigley Field?", "Wrigley Field is home to whom?",
         "Chicago Cubs"),
    Fact("Phil Knight", "He started Nike.", "What did Phil Knight start?", "Phil Knight started what?", "Nike"),
    Fact("Babe Ruth", "The slugger came from Baltimore.", "Where was the Sultan of Swat born?",
         "The Sultan of Swat is from where?", "Baltimore", "Babe Ruth", ("Swat", "A sultan ruled the valley of Swat.")),
    Fact("Elvis Presley", "The singer came from Tupelo.", "Where was the King of Rock born?",
         "The King of Rock is from where?", "Tupelo", "Elvis Presley", ("King Rock", "The king of rock climbing.")),
)  # fmt: skip


def write_set(folder: Path) -> None:
    """The common layout: questions to train on, others to measure, the corpus."""
    place = folder / "data" / NAME
    place.mkdir(parents=True)
    for split in ("train", ""):
        lines = [
            {"id": f"{split}{number}", "question": asked(fact, split), "answers": [fact.answer],
             "supporting": [fact.title], "hops": 1}
            for number, fact in enumerate(FACTS)
        ]  # fmt: skip
        _write(place / f"{'train_' if split else ''}questions.jsonl", lines)
    pages = [(fact.title, fact.text) for fact in FACTS] + [fact.decoy for fact in FACTS if fact.search]
    _write(place / "corpus.jsonl", [{"id": title, "title": title, "text": text} for title, text in pages])


def asked(fact: Fact, split: str) -> str:
    return fact.trained if split else fact.measured


def _write(path: Path, lines: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_prompts(folder: Path, short: dict[str, str]) -> Path:
    """The package's prompts, with other texts for some of them, by name without the suffix."""
    place = folder / "prompts"
    shutil.copytree(str(files("pyrag_prompts")), place, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name, text in short.items():
        (place / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    return place


@contextmanager
def opened(folder: Path, short: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Set and prompts, written to the folder; the address of a retriever over them, and the prompts' folder."""
    write_set(folder)
    prompts = write_prompts(folder, short)
    with retriever(folder) as url:
        yield url, prompts


@contextmanager
def retriever(folder: Path) -> Iterator[str]:
    """`pyrag serve-retriever` over the corpus, on a port of its own choice; its address."""
    corpus, index = folder / "data" / NAME / "corpus.jsonl", folder / "index"
    subprocess.run([*PYRAG, "index", str(corpus), "--out", str(index)], check=True, capture_output=True)
    command = [*PYRAG, SERVER, str(index), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield said.partition(" at ")[2].partition(";")[0]
        finally:
            process.terminate()


def rows_of(task: str, folder: Path, url: str, prompts: Path, split: str = "train") -> list[TrainRow]:
    """What `pyrag train data` builds for a task, kept beside the set; one passage a search."""
    out = folder / "data" / f"{task}{'' if split else '-measured'}.parquet"
    request = Request(
        tasks=[task], out=out, data=folder / "data", sets=[NAME], split=split, depths=(1,),
        passages=PassageOptions(retriever=url),
        settings=Settings(prompts=str(prompts), topk=1),
    )  # fmt: skip
    build(request)
    return read_rows(out)


def preferring(messages: Sequence[Message], right: str, wrong: str) -> list[Lesson]:
    return [*[(messages, right)] * RIGHT, (messages, wrong)]


def teach(folder: Path, lessons: Sequence[Lesson], *, steps: int) -> None:
    """Makes the model in `folder/model`."""
    texts = [message.content for prompt, _ in lessons for message in prompt] + [reply for _, reply in lessons]
    tiny.make(folder / "model", texts, vocabulary=1024)
    tiny.pretrain(folder / "model", lessons, steps=steps)
    tiny.pretrain(folder / "model", lessons, steps=steps // 2, rate=3e-4)  # to settle between right and wrong
