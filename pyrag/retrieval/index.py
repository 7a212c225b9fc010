"""Index folders: built or updated separately, switched in one step, and checked when opened.

    DIR/pyrag-index.json    description of the index, with the name of the generation in use
    DIR/gen-.../bm25/       tantivy's files with the passages
    DIR/gen-.../vectors/    files of `faiss_index`, for kinds with vectors
    DIR/gen-.../records.db  passages by file
    DIR/documents/          documents sent over HTTP

A build writes to `.DIR.building`, or to `DIR/.building` if DIR exists. Only a complete generation is renamed to DIR or,
if DIR already is an index, moved into it and named in `pyrag-index.json`, which is replaced in one step. Until then,
and after any failure, readers use the previous generation. The next build resumes a killed build from its last
checkpoint. An existing index is updated: unchanged files are not read again.

`kind` determines the retriever: `bm25`, `hybrid` or `dense`. `pyrag.retrieval.indexing` builds and verifies indexes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pyrag.errors import DataError, PyRAGError
from pyrag.retrieval.bm25 import Bm25Index
from pyrag.retrieval.documents.reading import MARK, Columns, nothing_given
from pyrag.retrieval.indexing.bm25_part import KIND, Bm25Part, open_bm25, words_language
from pyrag.retrieval.indexing.checksums import cut_files
from pyrag.retrieval.indexing.sources import IndexSource, WantedSources, check_dropped, named_sources, wanted_sources
from pyrag.retrieval.sent import sent_documents, sent_folder
from pyrag.retrieval.words import analysis

if TYPE_CHECKING:
    from pyrag.retrieval.indexing.build import BuildOptions, BuildOutcome
    from pyrag.retrieval.indexing.part_protocol import Part
    from pyrag.retrieval.indexing.staging import StagingDir
    from pyrag.retrieval.indexing.update import IndexProgress

FORMAT = 3
KINDS = ("bm25", "hybrid", "dense")
VECTORS = "vectors"
T = TypeVar("T")


class IndexInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `pyrag-index.json`.

    Attributes:
        left_out: Number of files that could not be read.
        bad_records: Number of lines, rows and elements of other files that could not be read.
        sources: Paths that the index was built from, as they were first spelled.
        places: Real paths of the sources.
        excluded: Real paths below the sources that were removed from the index.
        embedder: Spec of the embedder; empty without vectors.
        language: Language of the words; empty without words.
        detected: Whether the language was detected.
    """

    format: int = FORMAT
    kind: str = KINDS[0]
    generation: str
    passages: int
    files: int
    left_out: int = 0
    bad_records: int = 0
    sources: tuple[str, ...]
    places: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    created: str
    analysis: int = analysis.VERSION
    embedder: str = ""
    language: str = ""
    detected: bool = True


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a build.

    Attributes:
        problems: Files that were skipped, with the reasons, at most 1000.
        bad_records: Files with the reasons for skipped lines, rows and elements; for each file, only the first ones.
        removed_files: Files that no longer exist or are no longer named, with their numbers of passages, at most 1000.
        remarks: Files with remarks on how they were read.
        unread: Kinds of files that are not read, with their numbers of files.
        sent: Ids of the documents in the index that were sent over HTTP.
    """

    info: IndexInfo
    added: int = 0
    changed: int = 0
    removed: int = 0
    files_read: int = 0
    problems: tuple[tuple[str, str], ...] = ()
    bad_records: tuple[tuple[str, str], ...] = ()
    removed_files: tuple[tuple[str, int], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    sent: tuple[str, ...] = ()


def _ignore(*_: object) -> None:
    pass


def update_index(
    paths: Iterable[str | Path],
    out: str | Path,
    progress: Callable[[IndexProgress], None] = _ignore,
    *,
    parts: tuple[Part, ...] = (),
    columns: Columns | None = None,
    add: bool = False,
    replace: bool = True,
    rebuild: bool = False,
    check_contents: bool = False,
    follow_links: bool = False,
    checkpoint: float = 30.0,
    on_wait: Callable[[], None] = _ignore,
) -> Built:
    """Update an index from files and folders, or build it if it does not exist.

    Files that no longer exist or are no longer named leave the index; documents sent over HTTP stay. Different
    spellings of a path are the same path. An index with other settings, of another version, or with a missing or
    truncated file is built from scratch.

    Args:
        paths: Files, folders and globs.
        out: Folder of the index.
        progress: Called after each batch of passages.
        parts: Parts of the index; by default only BM25, in the language set for the index.
        columns: Columns of tables, and the encoding of text files.
        add: Whether to keep the paths that the index was built from.
        replace: False to raise `DataError` if the index was built only from other paths, which would be dropped.
        rebuild: Whether to read everything again.
        check_contents: Whether to compare the contents of files whose size and time did not change.
        follow_links: Whether to follow symbolic links that lead out of the named folders.
        checkpoint: Seconds between checkpoints, from which the next build resumes if this build is killed.
        on_wait: Called before waiting for another build of the same folder.

    Raises:
        DataError: A named file is unreadable, `out` is not an index, or it was built from other paths and neither
            `add` nor `replace` is set. The index is unchanged.
        PyRAGError: The index cannot be written. It is unchanged.
    """
    from pyrag.retrieval.indexing.build import Build, BuildOptions
    from pyrag.retrieval.indexing.staging import staging_lock

    named_paths = [Path(path) for path in paths]
    if not named_paths:
        raise nothing_given()
    options = BuildOptions(
        parts=parts or (Bm25Part(language=language_of(out)),), columns=columns or Columns(), rebuild=rebuild,
        check_contents=check_contents, follow_links=follow_links, checkpoint=checkpoint,
    )  # fmt: skip
    target = Path(os.path.realpath(out))
    _check_target(target, Path(out))
    with write_errors(Path(out)), staging_lock(target, on_wait) as work:
        before = _info_before(target)
        known = sources_of(before)
        named = named_sources(named_paths, known)
        if before and before.passages and not (add or replace):
            check_dropped(named, [item for item in known if Path(item.place) not in sent_folder(target)], Path(out))
        named = named_sources([*named_paths, *sent_folder(target)], known)
        excluded = before.excluded if before else ()
        wanted = wanted_sources(named, known, excluded, add=add, may_be_empty=before is not None)
        base = target / before.generation if before else None
        outcome = Build(work, options, progress).run(lambda update: update.run(wanted), base)
        built = published(work, target, options, before, outcome, wanted)
        return msgspec.structs.replace(built, sent=sent_documents(target))


def sources_of(info: IndexInfo | None) -> list[IndexSource]:
    """Return the paths that an index was built from."""
    return list(map(IndexSource, info.sources, info.places)) if info else []


def published(
    work: StagingDir, target: Path, options: BuildOptions, before: IndexInfo | None, outcome: BuildOutcome,
    wanted: WantedSources,
) -> Built:  # fmt: skip
    """Switch to a build unless nothing changed, and return its result.

    Args:
        work: Staging folder.
        target: Folder of the index.
        options: Options of the build.
        before: Description of the index before the build. None if it did not exist.
        outcome: Content of the new generation.
        wanted: Sources of the index.
    """
    from pyrag.retrieval.indexing.build import publish

    info = IndexInfo(
        generation=f"gen-{time.time_ns():x}",
        passages=outcome.passages,
        files=outcome.files,
        left_out=outcome.left_out,
        bad_records=outcome.bad_records,
        sources=tuple(source.name for source in wanted.sources),
        places=tuple(source.place for source in wanted.sources),
        excluded=wanted.excluded,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        kind=_kind(options.parts),
        embedder=_embedder(options.parts),
        language=words_language(work.live / KIND),
        detected=not any(part.settings.get("language") for part in options.parts),
    )
    if before and not outcome.new and _origin(before) == _origin(info):
        return _built(before, outcome)
    publish(work, target, info.generation, info)
    return _built(info, outcome)


def _origin(info: IndexInfo) -> tuple[tuple[str, ...], ...]:
    return info.sources, info.places, info.excluded


def open_index(path: str | Path) -> Bm25Index:
    """Open the BM25 part of an index.

    Raises:
        DataError: The folder is not an index that this version of pyrag can read.
    """
    return open_generation(path, lambda folder: open_bm25(folder / KIND))


def open_generation(path: str | Path, opener: Callable[[Path], T]) -> T:
    """Open the generation in use; try again if it is replaced in the meantime.

    Args:
        path: Folder of the index.
        opener: Called with the folder of the generation.

    Raises:
        DataError: The folder is not an index that this version of pyrag can read, or `opener` raised `ValueError`,
            `OSError` or `DataError`.
    """
    folder = Path(path)
    info = read_info(folder)
    while True:
        result, failure = _tried(opener, folder / info.generation)
        before, info = info, read_info(folder)
        if info == before:
            break
        # The index was replaced meanwhile. Files of the opened generation may be missing, which tantivy may not notice.
    if failure is not None or result is None:
        if (shut := _unreadable(folder / info.generation)) is not None:
            raise DataError(
                f"{shut} cannot be read (Permission denied): check the permissions of the index"
            ) from failure
        cure = "build it again with pyrag index and --rebuild"
        raise DataError(f"the index {folder} is damaged ({_short(failure)}): {cure}") from failure
    return result


def _tried(opener: Callable[[Path], T], folder: Path) -> tuple[T | None, Exception | None]:
    try:
        if damaged_file := next(cut_files(folder), None):
            raise ValueError(f"{damaged_file} is missing or not as long as it was written")
        return opener(folder), None
    except (ValueError, OSError, DataError, sqlite3.Error) as error:
        return None, error


def _unreadable(folder: Path) -> Path | None:
    """Return a file or folder of the index that this user may not read; None if all are readable."""
    needs = ((path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK) for path in (folder, *folder.rglob("*")))
    return next((path for path, mode in needs if path.exists() and not os.access(path, mode)), None)


def read_info(path: str | Path) -> IndexInfo:
    """Return the description of an index.

    Raises:
        DataError: The folder is not an index that this version of pyrag can read.
    """
    folder = Path(path)
    again = "build it again with pyrag index"
    if not folder.exists():
        raise DataError(f"there is no index at {folder}: build one with pyrag index PATH... --out {folder}")
    try:
        data = (folder / MARK).read_bytes()
        made = msgspec.json.decode(data, type=_Versions)
        if (made.format, made.analysis) != (FORMAT, analysis.VERSION):
            has, reads = f"{made.format}.{made.analysis}", f"{FORMAT}.{analysis.VERSION}"
            raise DataError(f"the index {folder} has version {has} and this pyrag reads version {reads}: {again}")
        info = msgspec.json.decode(data, type=IndexInfo)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder} is not a pyrag index: name a folder that pyrag index has built") from None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{folder / MARK} cannot be read ({error}): {again}") from error
    if info.kind not in KINDS:
        raise DataError(f"the index {folder} is of kind {info.kind!r}, which this pyrag does not know: {again}")
    return info


def language_of(path: str | Path) -> str:
    """Return the language set for an index, even if the index is damaged; empty if the language is detected."""
    return _setting_of(path, KIND, "language")


def embedder_of(path: str | Path) -> str:
    """Return the embedder spec of an index, even if the index is damaged; empty without vectors or without an index."""
    try:
        return read_info(path).embedder
    except DataError:
        return _setting_of(path, VECTORS, "embedder")


def _setting_of(path: str | Path, part: str, name: str) -> str:
    values = [
        value for settings in Path(path).glob("gen-*/settings.json") if (value := _setting_in(settings, part, name))
    ]
    return values[-1] if values else ""


def _setting_in(settings: Path, part: str, name: str) -> str:
    try:
        parts = msgspec.json.decode(settings.read_bytes(), type=_Settings).parts
        return str(parts.get(part, {}).get(name, ""))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return ""


def vectors_folder(path: str | Path, info: IndexInfo) -> Path:
    """Return the folder of the vectors of an index.

    Args:
        path: Folder of the index.
        info: Description of the index.
    """
    return Path(path) / info.generation / VECTORS


def _kind(parts: tuple[Part, ...]) -> str:
    if not any(part.kind == VECTORS for part in parts):
        return KIND
    return "dense" if any(isinstance(part, Bm25Part) and not part.words for part in parts) else "hybrid"


def _embedder(parts: tuple[Part, ...]) -> str:
    return next((str(part.settings["embedder"]) for part in parts if part.kind == VECTORS), "")


class _Settings(msgspec.Struct):
    parts: dict[str, dict[str, Any]] = {}


class _Versions(msgspec.Struct):
    format: int = FORMAT
    analysis: int = analysis.VERSION


def _info_before(target: Path) -> IndexInfo | None:
    """Return the description of the index; None if there is no readable index."""
    try:
        return read_info(target)
    except DataError:
        return None


def _built(info: IndexInfo, outcome: BuildOutcome) -> Built:
    changes = outcome.changes
    return Built(
        info=info, added=changes.added, changed=changes.changed, removed=changes.removed,
        files_read=changes.files_read, problems=tuple(outcome.problems), bad_records=tuple(outcome.bad),
        removed_files=tuple(outcome.removed_files), remarks=tuple(outcome.remarks), unread=tuple(outcome.unread),
    )  # fmt: skip


def _check_target(target: Path, written_path: Path) -> None:
    if target.is_dir():
        if not (target / MARK).exists() and any(entry.name != ".building" for entry in target.iterdir()):
            raise DataError(f"{written_path} holds files that are not a pyrag index: choose another folder with --out")
    elif target.exists():
        raise DataError(f"{written_path} is a file: choose a folder with --out")


@contextmanager
def write_errors(out: Path) -> Iterator[None]:
    """Turn write errors into `PyRAGError`. tantivy reports all errors, even a full disk, as `ValueError`."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or _short(error)
        raise PyRAGError(
            f"the index {out} could not be written ({reason}): make room or check permissions, choose another --out, "
            "or add --rebuild if pyrag index verify finds it damaged"
        ) from error


def _short(error: Exception | None) -> str:
    """Return the beginning of an error's text, since tantivy quotes the whole content of a file that it cannot read."""
    return " ".join(str(error).split())[:200]
