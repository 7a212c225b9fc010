"""Conversion of a released data set, from a file or the hub, into `questions.jsonl` and perhaps `corpus.jsonl`.

Records are streamed; the files appear when all records are good, so that a broken source leaves no partial set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyrag._io.files import AtomicFile
from pyrag._io.hub import HUB, Remote, fetch
from pyrag.errors import DataError, UsageError, nearest
from pyrag.evaluation.datasets.importers.formats import OFFICIAL, Format, Item, canonical_name, format_of
from pyrag.evaluation.datasets.importers.source import Record, read_records
from pyrag.evaluation.datasets.layout import question_of

_FLASHRAG = "RUC-NLPIR/FlashRAG_datasets"
# With their paragraphs where a repository has them; else the questions alone, as FlashRAG collects them.
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
_ELSEWHERE = {"hover": "https://github.com/hover-nlp/hover/tree/main/data/hover"}


@dataclass(frozen=True, slots=True)
class Imported:
    questions: int
    passages: int


def import_set(name: str, source: Path, out: Path) -> Imported:
    """Convert a released file; an earlier import in `out` is replaced.

    Args:
        name: The set, which selects the format of an official release.
        source: The file.
        out: The folder to write.

    Raises:
        DataError: A record is wrong; names file, place and cure.
        UsageError: The format is unknown.
    """
    name = canonical_name(name)
    with _files(out) as (questions, corpus):
        writer = _SetWriter(questions, corpus)
        chosen: Format | None = None
        for number, record in enumerate(read_records(source), start=1):
            chosen = chosen or _format(record, name)
            writer.add(record, chosen(record, name, number))
        if not writer.seen:
            raise DataError(f"{source} holds no record: fetch it again")
    return Imported(len(writer.seen), len(writer.passages))


def download_set(name: str, out: Path, source: str = HUB) -> Imported:
    """Download a set, and convert it.

    Args:
        name: The set.
        out: The folder to write.
        source: URL of a hub, or a folder that mirrors one.

    Raises:
        UsageError: No hub has the set.
        PermanentServiceError: It cannot be fetched.
    """
    return import_set(name, fetch(_remote(name), source), out)


def _remote(name: str) -> Remote:
    name = canonical_name(name)
    if address := _ELSEWHERE.get(name):
        raise UsageError(f"{name} is on no hub: fetch its file from {address}, then run pyrag data import {name} FILE")
    if name not in REMOTES:
        raise UsageError(f"there is no data set {name!r} to download{nearest(name, REMOTES)}")
    return REMOTES[name]


def _format(record: Record, name: str) -> Format:
    found = format_of(record, name)
    if found is None:
        raise UsageError(
            f"{record.where} is in none of the layouts that go by their fields (ours, FlashRAG, Search-R1), "
            f"and there is no data set {name!r} with a format of its own{nearest(name, OFFICIAL)}"
        )
    return found


class _SetWriter:
    """Writes each question and each passage once; two questions of one id are an error."""

    def __init__(self, questions: IO[bytes], corpus: IO[bytes]) -> None:
        self.questions, self.corpus = questions, corpus
        self.seen: dict[str, str] = {}  # where a question stands, by id
        self.passages: set[str] = set()

    def add(self, record: Record, item: Item) -> None:
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
def _files(out: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open both files under temporary names, and rename them when the block ends well.

    An import without passages leaves no corpus, not even an earlier one's; an import that fails leaves no folder that
    it made.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        target = AtomicFile(out / "corpus.jsonl")
        with AtomicFile(out / "questions.jsonl") as questions, target as corpus:
            yield questions, corpus
            if not corpus.tell():
                target.discard()
                (out / "corpus.jsonl").unlink(missing_ok=True)
    except OSError as error:
        _remove_empty(made)
        raise DataError(f"cannot write into {out}: {error.strerror or error}") from error
    except BaseException:
        _remove_empty(made)
        raise


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that are empty, the deepest first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
