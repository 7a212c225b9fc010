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
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pyrag.retrieval import analysis
from pyrag.retrieval.bm25 import Bm25Index, document, register, schema
from pyrag.retrieval.indexing.parts import Settings
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    import tantivy

KIND = "bm25"
MAX_GHOSTS = 0.05
SMALL = 10_000  # passages that are written anew in half a second
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


class _Meta(msgspec.Struct):
    segments: list[_Segment] = []


class Bm25Part:
    """The passages, searchable by words unless `words` is False, as beside vectors that are searched only."""

    kind = KIND
    keeps_places = True

    def __init__(self, *, words: bool = True) -> None:
        self.words = words

    @property
    def settings(self) -> Settings:
        return {"analysis": analysis.VERSION, **({} if self.words else {"words": False})}

    def writer(self, folder: Path) -> Bm25Writer:
        return Bm25Writer(folder, words=self.words)

    def is_as_wanted(self, folder: Path) -> bool:
        return True

    def finish(self, folder: Path, *, anew: bool, keep: Callable[[], object]) -> None:
        """Rewrite the part if deleted passages distort its scores. Args: those of `Part.finish`."""
        ghosts, documents = count_ghosts(folder)
        if (folder / _HAD_DELETIONS).exists() and (anew or documents <= SMALL or ghosts > MAX_GHOSTS * documents):
            _rewrite(folder, words=self.words)

    def ids(self, folder: Path) -> Iterator[str]:
        return (passage.id for passage in open_bm25(folder))


class Bm25Writer:
    def __init__(self, folder: Path, *, words: bool = True) -> None:
        import tantivy

        folder.mkdir(exist_ok=True)
        self._words = words
        self._folder = folder
        self._index = tantivy.Index(schema(), path=str(folder))
        register(self._index)
        self._writer: tantivy.IndexWriter | None = None

    def add(self, passages: Iterable[Passage]) -> None:
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
        if self._writer is None:
            return
        try:
            self._writer.commit()
            self._writer.wait_merging_threads()  # merging replaces files, and uses the writer up
        except ValueError as error:
            raise _reason(self._folder, error) from error
        finally:
            self._writer = None

    def close(self) -> None:
        self._writer = None  # ends its threads, also after a failure: they must not outlive the folder

    def _open(self) -> tantivy.IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP)
        return self._writer


def open_bm25(folder: Path) -> Bm25Index:
    """Open the part, also in a read-only folder. Raises `ValueError` or `OSError` if the folder is damaged."""
    import tantivy

    try:
        return Bm25Index(tantivy.Index.open(str(folder)))
    except ValueError:
        if _may_lock(folder):
            raise
    with _linked(folder) as copy:
        index = tantivy.Index.open(str(copy))
        index.config_reader(reload_policy="manual")  # nothing looks after the copy
        return Bm25Index(index)


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
    meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=_Meta)
    ghosts = sum(one.deletes.num_deleted_docs for one in meta.segments if one.deletes)
    return ghosts, sum(one.max_doc for one in meta.segments) - ghosts


def _rewrite(folder: Path, *, words: bool) -> None:
    fresh = folder.with_name(f"{folder.name}.new")
    writer = Bm25Writer(fresh, words=words)
    try:
        writer.add(open_bm25(folder))
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
