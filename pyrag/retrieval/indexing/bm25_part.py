"""BM25 part of an index: tantivy's files, written in segments.

Deleted documents count in tantivy's statistics until their segment is merged, and after that, the lengths of the other
documents are estimates. Scores would therefore depend on the history of an index. To avoid this, `finish` rewrites a
part that had deletions if it is small, was built from scratch, or has a share of deleted documents above `MAX_GHOSTS`.
The scores of large indexes may still differ by a few hundredths.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pyrag.retrieval.bm25 import Bm25Index, analyzer_of, document, register, schema
from pyrag.retrieval.indexing.part_protocol import Settings
from pyrag.retrieval.words import analysis
from pyrag.retrieval.words.languages import ENGLISH, detected_language
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    import tantivy

KIND = "bm25"
MAX_GHOSTS = 0.05
SAMPLE = 300  # passages from which the language is detected
SMALL = 10_000  # passages that can be rewritten in half a second
_BATCH = 1000  # passages
_META = "meta.json"  # where tantivy keeps its schema
_HAD_DELETIONS = "had-deletions"
_HEAP = 128_000_000  # bytes that tantivy may use before it writes a segment
_LOCK = ".tantivy-meta.lock"  # also locked by readers, while they look up the segments
_MEMORY = "/dev/shm"  # noqa: S108 (only a folder with a random name is created in it)
_FULL = 1 << 20  # free bytes below which a disk counts as full


class _Deletes(msgspec.Struct):
    num_deleted_docs: int = 0


class _TantivySegment(msgspec.Struct):
    max_doc: int
    deletes: _Deletes | None = None


class _Indexing(msgspec.Struct):
    tokenizer: str = ""


class _FieldOptions(msgspec.Struct, frozen=True):
    indexing: _Indexing | None = None


class _Field(msgspec.Struct):
    name: str
    options: _FieldOptions = _FieldOptions()


class _Meta(msgspec.Struct):
    segments: list[_TantivySegment] = []
    schema: list[_Field] = []


class Bm25Part:
    """Part that stores the passages and makes them searchable by words.

    Args:
        words: Whether words are searchable; False for indexes that are only searched by vectors.
        language: Language of the passages. Empty to detect it.
    """

    kind = KIND
    keeps_places = True

    def __init__(self, *, words: bool = True, language: str = "") -> None:
        self.words = words
        self.language = language if words else ENGLISH

    @property
    def settings(self) -> Settings:
        language = {"language": self.language} if self.words and self.language else {}
        return {"analysis": analysis.VERSION, **language, **({} if self.words else {"words": False})}

    def writer(self, folder: Path) -> Bm25Writer:
        return Bm25Writer(folder, words=self.words, language=self.language)

    def is_as_wanted(self, folder: Path) -> bool:
        return True

    def finish(self, folder: Path, *, from_scratch: bool, keep: Callable[[], object]) -> None:
        """Rewrite the part if deleted passages distort its scores, or if its language has changed.

        Args:
            folder: Folder of the part.
            from_scratch: True if the part was built from scratch.
            keep: Function that makes a checkpoint. It is not used here.
        """
        ghosts, documents = count_ghosts(folder)
        language = words_language(folder)
        target_language = self.language or detected_language(_texts(open_bm25(folder).sample(SAMPLE)))
        is_distorted = (folder / _HAD_DELETIONS).exists() and (
            from_scratch or documents <= SMALL or ghosts > MAX_GHOSTS * documents
        )
        if is_distorted or target_language != language:
            _rewrite(folder, words=self.words, language=target_language)

    def ids(self, folder: Path) -> Iterator[str]:
        return (passage.id for passage in open_bm25(folder))


class Bm25Writer:
    """Writer of the part. A new part without a set language uses the first batch's language until it is finished.

    Args:
        folder: Folder of the part.
        words: False to store passages without their words.
        language: Language of a new part. Empty to detect it.
    """

    def __init__(self, folder: Path, *, words: bool = True, language: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self._words = words
        self._folder = folder
        self._language = words_language(folder) or language
        self._writer: tantivy.IndexWriter | None = None
        self._analysis: analysis.Analysis  # of the open writer

    def add(self, passages: Iterable[Passage]) -> None:
        passages = list(passages)
        self._language = self._language or detected_language(_texts(passages))
        writer = self._open()
        try:
            for passage in passages:
                writer.add_document(document(passage, self._analysis, words=self._words))
        except ValueError as error:
            raise _reason(self._folder, error) from error

    def delete(self, ids: Sequence[str]) -> None:
        writer = self._open()
        mark = self._folder / _HAD_DELETIONS
        if not mark.exists():
            mark.touch()
        for key in ids:
            writer.delete_documents_by_term("id", key)

    def commit(self) -> None:
        if self._writer is None and (self._folder / _META).exists():
            return
        writer = self._open()
        try:
            writer.commit()
            writer.wait_merging_threads()  # merging replaces files; afterwards the writer cannot be used
        except ValueError as error:
            raise _reason(self._folder, error) from error
        finally:
            self._writer = None

    def close(self) -> None:
        self._writer = None  # ends its threads, which must not outlive the folder, even after a failure

    def _open(self) -> tantivy.IndexWriter:
        import tantivy

        if self._writer is None:
            analyzer = analyzer_of(self._language or ENGLISH)
            index = tantivy.Index(schema(analyzer), path=str(self._folder))
            self._analysis = register(index, analyzer)
            self._writer = index.writer(_HEAP, 1)  # reading takes longer, and each thread makes segments of its own
        return self._writer


def _texts(passages: Iterable[Passage]) -> Iterator[str]:
    return (f"{passage.title}\n{passage.text}" for passage in passages)


def words_language(folder: Path) -> str:
    """Return the language that was used to analyse a part; empty for a folder without a part.

    Args:
        folder: Folder of the part.
    """
    return _analyzer_in(folder).partition("-")[2] if (folder / _META).exists() else ""


def _analyzer_in(folder: Path) -> str:
    fields = _meta(folder).schema
    return next(
        (item.options.indexing.tokenizer for item in fields if item.name == "body" and item.options.indexing), ""
    )


def _meta(folder: Path) -> _Meta:
    return msgspec.json.decode((folder / _META).read_bytes(), type=_Meta)


def open_bm25(folder: Path) -> Bm25Index:
    """Open the part, even in a read-only folder.

    Raises:
        ValueError: The folder is damaged.
        OSError: The folder cannot be read.
    """
    import tantivy

    try:
        return Bm25Index(tantivy.Index.open(str(folder)), _analyzer_in(folder))
    except ValueError:
        if _may_lock(folder):
            raise
    with _linked(folder) as copy:
        index = tantivy.Index.open(str(copy))
        index.config_reader(reload_policy="manual")  # do not watch the copy, which is removed now
        return Bm25Index(index, _analyzer_in(folder))


def _may_lock(folder: Path) -> bool:
    """Return whether tantivy can take the lock that it needs for reading."""
    lock = folder / _LOCK
    return os.access(lock if lock.exists() else folder, os.W_OK)


@contextmanager
def _linked(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder for the lock, with links to the files. It can be deleted after the files are opened."""
    copy = Path(tempfile.mkdtemp(prefix="pyrag-index-", dir=_scratch()))
    try:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                (copy / path.name).symlink_to(path.absolute())
        yield copy
    finally:
        for _ in range(10):  # a thread of tantivy may be taking the lock at this moment
            shutil.rmtree(copy, ignore_errors=True)
            if not copy.exists():
                break


def _scratch() -> str | None:
    """Return a folder for temporary files: None for Python's default, which may be missing in a read-only container."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return _MEMORY
    return None


def count_ghosts(folder: Path) -> tuple[int, int]:
    """Count the deleted documents that are still in the statistics, and all other documents."""
    meta = _meta(folder)
    ghosts = sum(segment.deletes.num_deleted_docs for segment in meta.segments if segment.deletes)
    return ghosts, sum(segment.max_doc for segment in meta.segments) - ghosts


def _rewrite(folder: Path, *, words: bool, language: str) -> None:
    fresh = folder.with_name(f"{folder.name}.new")
    writer = Bm25Writer(fresh, words=words, language=language)
    try:
        passages = iter(open_bm25(folder))
        while batch := list(islice(passages, _BATCH)):
            writer.add(batch)
        writer.commit()
    finally:
        writer.close()
    shutil.rmtree(folder)
    fresh.rename(folder)


def _reason(folder: Path, error: ValueError) -> Exception:
    """Return the likely error. tantivy reports a full disk only as the death of a thread."""
    if shutil.disk_usage(folder).free < _FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return error
