"""Conversion of a released data set, from a file or the hub, to `questions.jsonl` and, with passages, `corpus.jsonl`.

Records are streamed, and the files are renamed into place after all records proved valid, so a broken source leaves no
partial set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from pyrag._io.files import AtomicFile
from pyrag._io.hub import HUB, Remote, fetch
from pyrag.errors import DataError, UsageError, nearest
from pyrag.evaluation.datasets.importers.formats import OFFICIAL, Format, canonical_name, format_of, mixed_source
from pyrag.evaluation.datasets.importers.items import Item
from pyrag.evaluation.datasets.importers.source import Record, read_records
from pyrag.evaluation.datasets.layout import question_of

_FLASHRAG = "RUC-NLPIR/FlashRAG_datasets"
SEARCH_R1 = "search-r1"
_SEARCH_R1_TRAIN = Remote("PeterJinGo/nq_hotpotqa_train", "train.parquet")  # the training set of Search-R1 and PyRAG
TRAIN = "train"
# With their paragraphs if a repository has them; otherwise only the questions, as FlashRAG collects them.
REMOTES = {
    "popqa": Remote("akariasai/PopQA", "test.tsv"),
    "hotpotqa": Remote("hotpotqa/hotpot_qa", "distractor/validation-00000-of-00001.parquet"),
    "2wikimultihopqa": Remote(_FLASHRAG, "2wikimultihopqa/dev.jsonl"),
    "musique": Remote("dgslibisey/MuSiQue", "musique_ans_v1.0_dev.jsonl"),
    "bamboogle": Remote(_FLASHRAG, "bamboogle/test.jsonl"),
    "nq": Remote(_FLASHRAG, "nq/test.jsonl"),
    "ambigqa": Remote(_FLASHRAG, "ambig_qa/dev.jsonl"),
    "multihoprag": Remote("yixuantt/MultiHopRAG", "MultiHopRAG.json"),
}
TRAIN_REMOTES = {
    SEARCH_R1: (_SEARCH_R1_TRAIN,),
    "nq": (_SEARCH_R1_TRAIN,),
    "hotpotqa": tuple(Remote("hotpotqa/hotpot_qa", f"distractor/train-0000{part}-of-00002.parquet") for part in (0, 1)),
    "2wikimultihopqa": (Remote(_FLASHRAG, "2wikimultihopqa/train.jsonl"),),
    "musique": (Remote("dgslibisey/MuSiQue", "musique_ans_v1.0_train.jsonl"),),
}
_ELSEWHERE = {"hover": "https://github.com/hover-nlp/hover/tree/main/data/hover"}
# Numbers of questions in PyRAG's table 4, by set and split.
PAPER_COUNTS = {
    ("nq", TRAIN): 79_168, ("hotpotqa", TRAIN): 8_757, ("nq", ""): 3_610, ("hotpotqa", ""): 7_405,
    ("popqa", ""): 14_267, ("2wikimultihopqa", ""): 12_576, ("musique", ""): 2_417, ("bamboogle", ""): 125,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Imported:
    """Outcome of an import.

    Attributes:
        questions: Number of questions written.
        passages: Number of passages written.
        others: Number of skipped records of other sets, by set.
        remark: Sentence if the papers give a different number of questions; otherwise empty.
    """

    questions: int
    passages: int
    others: dict[str, int] = field(default_factory=dict)
    remark: str = field(default="", compare=False)


def import_set(name: str, source: Path | Sequence[Path], out: Path, split: str = "") -> Imported:
    """Convert released files. An earlier import of the split in `out` is replaced.

    Args:
        name: Name of the set, which determines the format of an official release, and the records of a mixture.
        source: The file, or its parts in order.
        out: Folder to write.
        split: Name of the split: "train" for training questions, else empty.

    Raises:
        DataError: A record is wrong; the message says in which file and where, and how to fix it.
        UsageError: The format is unknown.
    """
    name, sources = canonical_name(name), [source] if isinstance(source, Path) else list(source)
    others: Counter[str] = Counter()
    with _files(out, split) as (questions, corpus):
        writer = _SetWriter(questions, corpus)
        chosen: Format | None = None
        for number, record in enumerate((record for path in sources for record in read_records(path)), start=1):
            chosen = chosen or _format(record, name)
            if (other := mixed_source(record, name)) is not None:
                others[other] += 1
                continue
            writer.add(record, chosen(record, name, number))
        if not writer.seen:
            raise DataError(
                f"{sources[0]} holds no record{f' of {name}' if others else ''}: {_elsewhere(others, sources[0])}"
            )
    return Imported(len(writer.seen), len(writer.passages), dict(others), _count_remark(name, split, len(writer.seen)))


def _elsewhere(others: Mapping[str, int], source: Path) -> str:
    if others:
        return f"its records are of {', '.join(others)}"
    is_table = Path(source.name.removesuffix(".gz")).suffix.lower() in (".tsv", ".csv")
    return "its first line counts as the heading, so add the rows" if is_table else "fetch it again"


def _count_remark(name: str, split: str, count: int) -> str:
    expected = PAPER_COUNTS.get((name, split), count)
    if expected == count:
        return ""
    kind = "training questions" if split else "questions"
    return f"PyRAG's table 4 counts {expected:,} {kind} of {name}; these are {count:,}"


def import_mixture(source: Path, out: Path, split: str = "") -> dict[str, Imported]:
    """Convert Search-R1's merged file into one set for each of its sources.

    Args:
        source: The file.
        out: Folder of sets.
        split: Name of the split: "train" for training questions, else empty.

    Returns:
        Outcome by set.

    Raises:
        DataError: A record is wrong, or names no set.
    """
    names: dict[str, None] = {}
    for record in read_records(source):
        names[canonical_name(record.text("data_source"))] = None
    return {name: replace(import_set(name, source, out / name, split), others={}) for name in names}


def download_set(name: str, out: Path, source: str = HUB, split: str = "") -> Imported:
    """Download a set and convert it.

    Args:
        name: Name of the set.
        out: Folder to write.
        source: URL of a hub, or a folder that mirrors one.
        split: Name of the split: "train" for training questions, else empty.

    Raises:
        UsageError: No hub has the set.
        PermanentServiceError: The set cannot be fetched.
    """
    return import_set(name, [fetch(remote, source) for remote in _remotes(name, split)], out, split)


def download_mixture(out: Path, source: str = HUB) -> dict[str, Imported]:
    """Download Search-R1's training questions, and write a set for each of their sources.

    Args:
        out: Folder of sets.
        source: URL of a hub, or a folder that mirrors one.

    Raises:
        PermanentServiceError: The questions cannot be fetched.
    """
    return import_mixture(fetch(_SEARCH_R1_TRAIN, source), out, TRAIN)


def _remotes(name: str, split: str) -> tuple[Remote, ...]:
    name = canonical_name(name)
    if address := _ELSEWHERE.get(name):
        raise UsageError(f"{name} is on no hub: fetch its file from {address}, then run pyrag data import {name} FILE")
    if split:
        if name not in TRAIN_REMOTES:
            raise UsageError(f"there are no training questions of {name!r} to download{nearest(name, TRAIN_REMOTES)}")
        return TRAIN_REMOTES[name]
    if name == SEARCH_R1:
        raise UsageError(f"{SEARCH_R1} is a mixture of training questions: add --split {TRAIN}")
    if name not in REMOTES:
        raise UsageError(f"there is no data set {name!r} to download{nearest(name, REMOTES)}")
    return (REMOTES[name],)


def _format(record: Record, name: str) -> Format:
    chosen_format = format_of(record, name)
    if chosen_format is None:
        raise UsageError(
            f"{record.where} does not have the fields of a known layout (ours, FlashRAG, Search-R1), "
            f"and there is no data set {name!r} with a format of its own{nearest(name, OFFICIAL)}"
        )
    return chosen_format


class _SetWriter:
    """Writer that writes each question and each passage once. Two questions with the same id are an error."""

    def __init__(self, questions: IO[bytes], corpus: IO[bytes]) -> None:
        self.questions, self.corpus = questions, corpus
        self.seen: dict[str, str] = {}  # where a question stands, by id
        self.passages: set[str] = set()

    def add(self, record: Record, item: Item) -> None:
        """Write a question and its passages."""
        self._write(self.questions, record, item.fields)
        for passage in item.passages:
            if passage.id not in self.passages:
                self.passages.add(passage.id)
                self._dump(self.corpus, {"id": passage.id, "title": passage.title, "text": passage.text})

    def _write(self, file: IO[bytes], record: Record, fields: dict[str, Any]) -> None:
        question = question_of(record.where, fields)
        if question.id in self.seen:
            record.fail(f"repeats the id {question.id!r} of {self.seen[question.id]}: remove one of them")
        self.seen[question.id] = record.where.rpartition(" ")[2]
        self._dump(file, fields)

    @staticmethod
    def _dump(file: IO[bytes], fields: dict[str, Any]) -> None:
        import msgspec

        file.write(msgspec.json.encode(fields) + b"\n")


@contextmanager
def _files(out: Path, split: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open both files under temporary names, and rename them if the block ends without an error.

    After an import without passages, there is no corpus, not even an earlier one. A failed import removes the folders
    that it created.
    """
    prefix = f"{split}_" if split else ""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        target = AtomicFile(out / f"{prefix}corpus.jsonl")
        with AtomicFile(out / f"{prefix}questions.jsonl") as questions, target as corpus:
            yield questions, corpus
            if not corpus.tell():
                target.discard()
                (out / f"{prefix}corpus.jsonl").unlink(missing_ok=True)
    except OSError as error:
        _remove_empty(made)
        raise DataError(f"cannot write into {out}: {error.strerror or error}") from error
    except BaseException:
        _remove_empty(made)
        raise


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty, starting with the deepest."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
