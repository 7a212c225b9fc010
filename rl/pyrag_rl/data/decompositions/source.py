"""The file of gold decompositions, and the choice of its questions by source, split and kind.

    FOLDER/decompositions.jsonl.gz    one question per line, with its sub-questions
    FOLDER/corpus.jsonl.gz            gold passages; optional

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
    """Sub-question. `plain` is a template's wording if `question` is the data set's shorthand ("X >> spouse")."""

    question: str
    answer: str | int | float = ""
    depends_on: tuple[int, ...] = ()  # numbers of earlier steps, from 1
    supporting: str = ""  # id of the gold passage
    plain: str = ""
    op: str = ""  # "compare" if the step compares the answers of earlier steps
    triple: tuple[str, ...] = ()  # subject, relation, object

    @property
    def gold(self) -> str:
        """The answer as text; empty if it is unknown."""
        return str(self.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """Question with its sub-questions. Questions of the same `group` are different wordings of the same question."""

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
    supporting: tuple[
        str, ...
    ] = ()  # ids of the gold passages; in the order of the steps if the steps name no passages
    answerable: bool = True

    def passage_of(self, number: int) -> str:
        """Return the id of a step's gold passage, with steps counted from 1; empty if it is unknown."""
        searched = [step for step in self.sub_questions if step.op != "compare"]
        if number > len(searched):
            return ""
        own = searched[number - 1].supporting
        return own or (self.supporting[number - 1] if len(self.supporting) == len(searched) else "")

    @property
    def kind(self) -> str:
        """Kind of the question in its source: its type, or the number of steps."""
        return self.type or str(self.hops)


def read_decompositions(folder: Path) -> Iterator[GoldQuestion]:
    """Yield all questions in a folder. Raises `DataError`, naming file and line, if it cannot be read."""
    import msgspec

    path = find_file(folder, DECOMPOSITIONS)
    if path is None:
        raise DataError(f"{folder} holds no {DECOMPOSITIONS}.jsonl[.gz]: name the folder with the decompositions")
    decoder = msgspec.json.Decoder(GoldQuestion)
    for number, line in numbered_lines(path):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} line {number} is not a decomposition ({error}): fix or remove the line") from error


def read_gold_passages(folder: Path) -> dict[str, Passage]:
    """Return the gold passages of a folder by id; empty if it has none. Raises `DataError` for a damaged file."""
    path = find_file(folder, CORPUS)
    return {} if path is None else read_corpus(path)


def read_corpus(path: Path) -> dict[str, Passage]:
    """Return the passages of a file by id. Raises `DataError` for a damaged file."""
    import msgspec

    decoder = msgspec.json.Decoder(Passage)
    try:
        return {passage.id: passage for passage in (decoder.decode(line) for _, line in numbered_lines(path))}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} holds a line that is not a passage ({error}): fix or remove it") from error


def read_caps(texts: Iterable[str]) -> dict[str, int | None]:
    """Return the maximum number of questions of each source, by the beginning of its name; None for all.

    Args:
        texts: Options such as "2wiki=2000" or "musique".

    Raises:
        UsageError: A number is not valid.
    """
    caps: dict[str, int | None] = {}
    for text in texts:
        name, separator, number = text.partition("=")
        if separator and not (number.isdigit() and int(number) > 0):
            raise UsageError(f"--source takes NAME or NAME=NUMBER, such as 2wiki=2000, not {text!r}")
        caps[name] = int(number) if separator else None
    return caps


def chosen(
    questions: Iterable[GoldQuestion], splits: Sequence[str], caps: Mapping[str, int | None], seed: int
) -> list[GoldQuestion]:
    """Return the questions to learn from, in an order that depends only on the seed.

    One wording of each group is used. The questions of a source are ordered so that any first part of the list has all
    kinds in equal numbers, if there are enough of them.

    Args:
        questions: All questions.
        splits: Splits to use; empty for all.
        caps: Maximum number of questions of each source, by the beginning of its name; empty for all sources.
        seed: Seed for the order.

    Raises:
        UsageError: A name in `caps` is not the beginning of any source's name.
    """
    everything = list(questions)
    sources = sorted({question.source for question in everything})
    for name in caps:
        if not any(source.startswith(name) for source in sources):
            raise UsageError(
                f"there is no source {name!r}{nearest(name, sources)}: the folder has {', '.join(sources)}"
            )
    candidates = [question for question in everything if not splits or question.split in splits]
    if not caps:
        return _mixed(candidates, seed)
    matches: dict[str, GoldQuestion] = {}
    for name, limit in caps.items():
        ordered = _mixed([question for question in candidates if question.source.startswith(name)], seed)
        matches |= {question.id: question for question in ordered[:limit]}
    return list(matches.values())


def _mixed(questions: Sequence[GoldQuestion], seed: int) -> list[GoldQuestion]:
    """Return the questions in random order, with alternating kinds and one wording of each group."""
    shuffled = sorted(questions, key=lambda question: random.Random(f"{seed}:{question.source}:{question.id}").random())  # noqa: S311
    kinds: dict[str, list[GoldQuestion]] = defaultdict(list)
    groups: set[str] = set()
    for question in shuffled:
        if question.group and question.group in groups:
            continue
        groups.add(question.group)
        kinds[question.kind].append(question)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [question for turn in turns for question in turn if question is not None]
