"""The BM25 part of an index: tantivy's files, written in segments.

Documents that were deleted count in tantivy's statistics until their segment is merged, and from then on the lengths of
the others are estimates: scores depend on the history of an index. So `finish` writes a part anew that had deletions,
if it is small, was built from nothing, or more than `MAX_GHOSTS` of it are deleted. What is left are differences in
the scores of large indexes, of some hundredths at most.
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
from pyrag.retrieval.indexing.parts import Settings
from pyrag.retrieval.words import analysis
from pyrag.retrieval.words.languages import ENGLISH, detected_language
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    import tantivy

KIND = "bm25"
MAX_GHOSTS = 0.05
SAMPLE = 300  # passages by which the language is detected
SMALL = 10_000  # passages that are written anew in half a second
_BATCH = 1000  # passages
_META = "meta.json"  # where tantivy keeps its schema
_HAD_DELETIONS = "had-deletions"
_HEAP = 128_000_000  # bytes that tantivy may use before it writes a segment
_LOCK = ".tantivy-meta.lock"  # taken by readers too, while they find out which segments there are
_MEMORY = "/dev/shm"  # noqa: S108 (a folder of random name is made in it)
_FULL = 1 << 20  # bytes left on a disk that we call full


class _Deletes(msgspec.Struct):
    num_deleted_docs: int = 0


class _Segment(msgspec.Struct):
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
    segments: list[_Segment] = []
    schema: list[_Field] = []


class Bm25Part:
    """The passages, searchable by words.

    Args:
        words: False to store them only, as beside vectors that are searched only.
        language: Their language; empty to detect it.
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

    def finish(self, folder: Path, *, anew: bool, keep: Callable[[], object]) -> None:
        """Rewrite the part if deleted passages distort its scores, or its language is another one by now.

        Args: those of `Part.finish`.
        """
        ghosts, documents = count_ghosts(folder)
        language = words_language(folder)
        wanted = self.language or detected_language(_texts(open_bm25(folder).sample(SAMPLE)))
        distorted = (folder / _HAD_DELETIONS).exists() and (
            anew or documents <= SMALL or ghosts > MAX_GHOSTS * documents
        )
        if distorted or wanted != language:
            _rewrite(folder, words=self.words, language=wanted)

    def ids(self, folder: Path) -> Iterator[str]:
        return (passage.id for passage in open_bm25(folder))


class Bm25Writer:
    """Writer of the part. Where the language is to be detected, a new part takes that of the first passages until then.

    Args:
        folder: Folder of the part.
        words: False to store passages without their words.
        language: Language of a new part; empty to detect it.
    """

    def __init__(self, folder: Path, *, words: bool = True, language: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self._words = words
        self._folder = folder
        self._language = words_language(folder) or language
        self._writer: tantivy.IndexWriter | None = None

    def add(self, passages: Iterable[Passage]) -> None:
        passages = list(passages)
        self._language = self._language or detected_language(_texts(passages))
        writer = self._open()
        try:
            for passage in passages:
                writer.add_document(document(passage, words=self._words))
        except ValueError as error:
            raise _reason(self._folder, error) from error

    def delete(self, ids: Sequence[str]) -> None:
        writer = self._open()
        mark = self._folder / _HAD_DELETIONS
        if not mark.exists():
            mark.touch()
        for one in ids:
            writer.delete_documents_by_term("id", one)

    def commit(self) -> None:
        if self._writer is None and (self._folder / _META).exists():
            return
        writer = self._open()
        try:
            writer.commit()
            writer.wait_merging_threads()  # merging replaces files, and uses the writer up
        except ValueError as error:
            raise _reason(self._folder, error) from error
        finally:
            self._writer = None

    def close(self) -> None:
        self._writer = None  # ends its threads, also after a failure: they must not outlive the folder

    def _open(self) -> tantivy.IndexWriter:
        import tantivy

        if self._writer is None:
            analyzer = analyzer_of(self._language or ENGLISH)
            index = tantivy.Index(schema(analyzer), path=str(self._folder))
            register(index, analyzer)
            self._writer = index.writer(_HEAP)
        return self._writer


def _texts(passages: Iterable[Passage]) -> Iterator[str]:
    return (f"{passage.title}\n{passage.text}" for passage in passages)


def words_language(folder: Path) -> str:
    """Return the language that a part is analysed in; empty for a folder without a part.

    Args:
        folder: Folder of the part.
    """
    return _analyzer_in(folder).partition("-")[2] if (folder / _META).exists() else ""


def _analyzer_in(folder: Path) -> str:
    fields = _meta(folder).schema
    return next((one.options.indexing.tokenizer for one in fields if one.name == "body" and one.options.indexing), "")


def _meta(folder: Path) -> _Meta:
    return msgspec.json.decode((folder / _META).read_bytes(), type=_Meta)


def open_bm25(folder: Path) -> Bm25Index:
    """Open the part, also in a read-only folder. Raises `ValueError` or `OSError` if the folder is damaged."""
    import tantivy

    try:
        return Bm25Index(tantivy.Index.open(str(folder)), _analyzer_in(folder))
    except ValueError:
        if _may_lock(folder):
            raise
    with _linked(folder) as copy:
        index = tantivy.Index.open(str(copy))
        index.config_reader(reload_policy="manual")  # nothing looks after the copy
        return Bm25Index(index, _analyzer_in(folder))


def _may_lock(folder: Path) -> bool:
    """True if tantivy can take the lock that it takes before it reads."""
    lock = folder / _LOCK
    return os.access(lock if lock.exists() else folder, os.W_OK)


@contextmanager
def _linked(folder: Path) -> Iterator[Path]:
    """Yield a folder for the lock elsewhere, with links to the files; it may be removed once they are open."""
    copy = Path(tempfile.mkdtemp(prefix="pyrag-index-", dir=_scratch()))
    try:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                (copy / path.name).symlink_to(path.absolute())
        yield copy
    finally:
        for _ in range(10):  # a thread of tantivy's may just be taking the lock again
            shutil.rmtree(copy, ignore_errors=True)
            if not copy.exists():
                break


def _scratch() -> str | None:
    """A place that can be written to; None is Python's own choice, which a read-only container may not have."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return _MEMORY
    return None


def count_ghosts(folder: Path) -> tuple[int, int]:
    """Count the documents that are deleted but still in the statistics, and all others."""
    meta = _meta(folder)
    ghosts = sum(one.deletes.num_deleted_docs for one in meta.segments if one.deletes)
    return ghosts, sum(one.max_doc for one in meta.segments) - ghosts


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
    """tantivy only says that a thread of its has died."""
    if shutil.disk_usage(folder).free < _FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return error
