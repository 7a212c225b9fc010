"""The file of gold decompositions, and which of its questions are taken: by source, split and type of question.

    FOLDER/decompositions.jsonl.gz    one question a line, with its sub-questions
    FOLDER/corpus.jsonl.gz            their gold passages; may be missing

`#1` in a sub-question stands for the answer of the first one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pyrag.errors import DataError, UsageError, nearest
from pyrag.evaluation.datasets.layout import find_file, numbered_lines
from pyrag.trace.model import Passage

DECOMPOSITIONS, CORPUS = "decompositions", "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldStep:
    """A sub-question. `plain` is a wording by template where `question` is the data set's shorthand ("X >> spouse")."""

    question: str
    answer: str | int | float = ""
    depends_on: tuple[int, ...] = ()  # numbers of earlier steps, from 1
    supporting: str = ""  # id of its gold passage
    plain: str = ""
    op: str = ""  # "compare": it compares the answers of earlier steps
    triple: tuple[str, ...] = ()  # subject, relation, object

    @property
    def gold(self) -> str:
        """The answer as text; empty where it is not known."""
        return str(self.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """A question with its sub-questions. Questions of one `group` are wordings of one another."""

    id: str
    source: str
    question: str
    answers: tuple[str, ...]
    sub_questions: tuple[GoldStep, ...]
    split: str = ""
    type: str = ""
    hops: int = 0
    form: str = ""  # "qdmr": steps are noun phrases
    group: str = ""
    supporting: tuple[str, ...] = ()  # ids of its gold passages, in the order of the steps where these have none
    answerable: bool = True

    def passage_of(self, number: int) -> str:
        """Return the id of the gold passage of a step, counted from 1; empty where it is not known."""
        searched = [one for one in self.sub_questions if one.op != "compare"]
        if number > len(searched):
            return ""
        own = searched[number - 1].supporting
        return own or (self.supporting[number - 1] if len(self.supporting) == len(searched) else "")

    @property
    def kind(self) -> str:
        """The form of the question in its source: its type, or the number of steps."""
        return self.type or str(self.hops)


def read_decompositions(folder: Path) -> Iterator[GoldQuestion]:
    """Yield all questions of a folder. Raises `DataError` with file, line and cure."""
    import msgspec

    path = find_file(folder, DECOMPOSITIONS)
    if path is None:
        raise DataError(f"{folder} holds no {DECOMPOSITIONS}.jsonl[.gz]: name the folder with the decompositions")
    decoder = msgspec.json.Decoder(GoldQuestion)
    for number, line in numbered_lines(path):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} line {number} is no decomposition ({error}): fix or remove the line") from error


def read_gold_passages(folder: Path) -> dict[str, Passage]:
    """Return the gold passages of a folder by id; empty where it has none. Raises `DataError`."""
    path = find_file(folder, CORPUS)
    return {} if path is None else read_corpus(path)


def read_corpus(path: Path) -> dict[str, Passage]:
    """Return the passages of a file by id. Raises `DataError`."""
    import msgspec

    decoder = msgspec.json.Decoder(Passage)
    try:
        return {one.id: one for one in (decoder.decode(line) for _, line in numbered_lines(path))}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} holds a line that is no passage ({error}): fix or remove it") from error


def read_caps(texts: Iterable[str]) -> dict[str, int | None]:
    """Return the most questions of each source, by the beginning of its name; None for all.

    Args:
        texts: Such as "2wiki=2000" or "musique".

    Raises:
        UsageError: A number is none.
    """
    caps: dict[str, int | None] = {}
    for text in texts:
        name, given, number = text.partition("=")
        if given and not (number.isdigit() and int(number) > 0):
            raise UsageError(f"--source takes NAME or NAME=NUMBER, such as 2wiki=2000, not {text!r}")
        caps[name] = int(number) if given else None
    return caps


def chosen(
    questions: Iterable[GoldQuestion], splits: Sequence[str], caps: Mapping[str, int | None], seed: int
) -> list[GoldQuestion]:
    """Return the questions to learn from, in an order that depends on the seed alone.

    One wording of each group is kept. The questions of a source are ordered so that each beginning of the list holds
    its kinds in equal numbers, as far as there are enough: templates of one kind do not drown the others.

    Args:
        questions: All questions.
        splits: The splits to take; empty takes all.
        caps: The most questions of each source, by the beginning of its name; empty takes all sources.
        seed: Seed of the order.

    Raises:
        UsageError: A name in `caps` is the beginning of no source.
    """
    everything = list(questions)
    sources = sorted({one.source for one in everything})
    for name in caps:
        if not any(source.startswith(name) for source in sources):
            raise UsageError(
                f"there is no source {name!r}{nearest(name, sources)}: the folder has {', '.join(sources)}"
            )
    taken = [one for one in everything if not splits or one.split in splits]
    if not caps:
        return _mixed(taken, seed)
    found: dict[str, GoldQuestion] = {}
    for name, most in caps.items():
        ordered = _mixed([one for one in taken if one.source.startswith(name)], seed)
        found |= {one.id: one for one in ordered[:most]}
    return list(found.values())


def _mixed(questions: Sequence[GoldQuestion], seed: int) -> list[GoldQuestion]:
    """The questions in random order, their kinds by turns, one wording of each group."""
    shuffled = sorted(questions, key=lambda one: random.Random(f"{seed}:{one.source}:{one.id}").random())  # noqa: S311
    kinds: dict[str, list[GoldQuestion]] = defaultdict(list)
    groups: set[str] = set()
    for one in shuffled:
        if one.group and one.group in groups:
            continue
        groups.add(one.group)
        kinds[one.kind].append(one)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [one for turn in turns for one in turn if one is not None]
