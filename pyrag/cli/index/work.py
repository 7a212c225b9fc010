"""Work of `pyrag index`: builds with progress, removals, info, searches and verification."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.cli.index.content import (
    as_object,
    described,
    language_words,
    outcome,
    print_left_out,
    print_notes,
    print_remarks,
    print_unread,
    shortfall,
)
from pyrag.cli.index.watch import build_and_watch
from pyrag.cli.output import print_json
from pyrag.cli.views.terminal import printable, raw_stream
from pyrag.cli.views.words import field_words
from pyrag.trace.model import shorten
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag.retrieval.documents.model import Columns
    from pyrag.retrieval.index import Built
    from pyrag.retrieval.indexing.bm25_part import Bm25Part
    from pyrag.retrieval.indexing.part_protocol import Part
    from pyrag.retrieval.indexing.ray_workers import RayWorkers
    from pyrag.retrieval.indexing.update import IndexProgress
    from pyrag.retrieval.vectors.faiss_index import Layout

_FIELDS = 30
_MAX_TEXT = 200  # characters of a passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Options for vectors; None keeps the value of an existing index. With `only`, words cannot be searched."""

    embedder: str | None = None
    only: bool = False
    type: str | None = None
    target: float | None = None
    shards: int | None = None
    ray: str | None = None
    workers: int = 2

    def layout(self, before: Layout) -> Layout:
        """Return the layout `before`, updated with the options that are not None."""
        import msgspec

        options = {name: getattr(self, name) for name in ("type", "target", "shards")}
        return msgspec.structs.replace(before, **{name: value for name, value in options.items() if value is not None})


def build(
    paths: list[Path],
    out: Path,
    *,
    columns: Columns,
    vectors: Vectors,
    add: bool,
    replace: bool,
    rebuild: bool,
    check_contents: bool,
    follow_links: bool,
    language: str | None,
    as_json: bool,
    watch_every: float | None = None,
) -> None:
    """Build or update an index.

    Args:
        paths: Files, folders and globs of documents.
        out: Folder of the index.
        columns: Columns of tables, and the encoding of texts.
        vectors: Options for vectors.
        add: Whether to update also the paths that the index was built from before.
        replace: Whether to drop the paths that the index was built from before, unless `paths` names them.
        rebuild: Whether to start from scratch.
        check_contents: Whether to compare contents even of files whose size and time did not change.
        follow_links: Whether to follow symbolic links that lead out of the folders.
        language: Language of the documents; empty to detect it. None keeps the index's language.
        as_json: Whether to print the result as one JSON line.
        watch_every: Seconds between two checks for changes, each of which updates the index; None to build only once.

    Raises:
        UsageError: An option needs vectors, and the index has no vectors.
    """
    with opened_parts(vectors, out, language) as parts:
        update = partial(
            build_parts, paths, out, parts, as_json=as_json, columns=columns, add=add, replace=replace,
            check_contents=check_contents, follow_links=follow_links,
        )  # fmt: skip
        build_and_watch(paths, out, watch_every, update, rebuild=rebuild)


def build_parts(paths: list[Path], out: Path, parts: tuple[Part, ...], *, as_json: bool, **options: Any) -> None:
    """Build an index while showing progress, and print the result.

    Args:
        paths: Files, folders and globs of documents.
        out: Folder of the index.
        parts: Parts of the index.
        as_json: Print the result as one JSON line.
        **options: Other arguments of `update_index`.
    """
    from pyrag.retrieval.index import update_index

    started = time.perf_counter()
    progress = _Progress()
    built = update_index(
        paths, out, progress, parts=parts, **options,
        on_wait=lambda: print(f"another build of {out} is going on: waiting for it to end", file=sys.stderr),
    )  # fmt: skip
    progress.end()
    seconds = time.perf_counter() - started
    if as_json:
        print_json(as_object(built, out, seconds))
        return
    print_notes(built)
    _print_shortfall(out, built)
    print(f'{outcome(built, out, seconds)}. Ask with: pyrag ask --index {out} "…"')


def remove(folder: Path, paths: Sequence[Path], *, as_json: bool) -> None:
    """Remove files and folders from an index.

    Args:
        folder: Folder of the index.
        paths: Files and folders to remove.
        as_json: Print the result as one JSON line.
    """
    from pyrag.retrieval.removal import remove_from_index

    started = time.perf_counter()
    with opened_parts(Vectors(), folder) as parts:
        built = remove_from_index(
            folder, paths, parts=parts,
            on_wait=lambda: print(f"a build of {folder} is going on: waiting for it to end", file=sys.stderr),
        )  # fmt: skip
    seconds = time.perf_counter() - started
    if as_json:
        print_json(as_object(built, folder, seconds))
        return
    print_notes(built)
    print(outcome(built, folder, seconds))


@contextmanager
def opened_parts(vectors: Vectors, out: Path, language: str | None = None) -> Iterator[tuple[Part, ...]]:
    """Open the parts of an index, and close them at the end of the block.

    Args:
        vectors: Options of vectors.
        out: Folder of the index.
        language: Language of the documents; empty to detect it. None keeps the index's language.

    Raises:
        UsageError: An option needs vectors, and the index has no vectors.
    """
    from pyrag.errors import UsageError
    from pyrag.retrieval.index import language_of
    from pyrag.retrieval.indexing.bm25_part import Bm25Part

    language = language_of(out) if language is None else language
    embedder, layout = made_before(out)
    embedder = embedder if vectors.embedder is None else vectors.embedder
    options = [name for name in ("type", "target", "shards", "ray") if getattr(vectors, name) is not None]
    if embedder in ("", "none"):
        if vectors.only:
            raise UsageError("--vectors-only leaves nothing to search without vectors: add --dense or --embedder")
        if options:
            option = "recall" if options[0] == "target" else options[0]
            raise UsageError(f"--{option} is about vectors, and this index has none: add --dense or --embedder")
        yield (Bm25Part(language=language),)
        return
    from pyrag.retrieval.embedders.embedding import open_embedder
    from pyrag.retrieval.indexing.dense_part import DensePart

    layout = vectors.layout(layout)
    dense = DensePart(open_embedder(embedder, timeout=300.0), layout, _on_ray(embedder, vectors))
    try:
        yield passages_part(vectors, out, language), dense
    finally:
        dense.close()


def passages_part(vectors: Vectors, out: Path, language: str = "") -> Bm25Part:
    """Return the part that holds the passages; it indexes no words if the options or the existing index exclude them.

    Args:
        vectors: Options of vectors.
        out: Folder of the index.
        language: Language of the documents; empty to detect it.
    """
    from pyrag.errors import DataError
    from pyrag.retrieval.index import read_info
    from pyrag.retrieval.indexing.bm25_part import Bm25Part

    try:
        before = read_info(out).kind
    except DataError:
        before = ""
    return Bm25Part(words=not vectors.only and before != "dense", language=language)


def made_before(out: Path) -> tuple[str, Layout]:
    """Return the embedder and layout of an existing index. The embedder is known even if the index is damaged."""
    from pyrag.errors import DataError
    from pyrag.retrieval.index import embedder_of, read_info, vectors_folder
    from pyrag.retrieval.vectors.faiss_index import Layout, read_vector_info

    embedder = embedder_of(out)
    try:
        return embedder, read_vector_info(vectors_folder(out, read_info(out))).layout if embedder else Layout()
    except DataError:
        return embedder, Layout()


def _on_ray(embedder: str, vectors: Vectors) -> RayWorkers | None:
    if vectors.ray is None:
        return None
    from pyrag.retrieval.indexing.ray_workers import RayWorkers

    return RayWorkers(embedder, vectors.ray, vectors.workers)


def _print_shortfall(out: Path, built: Built) -> None:
    from pyrag.retrieval.index import vectors_folder
    from pyrag.retrieval.vectors.faiss_index import read_vector_info

    if built.info.embedder and (short := shortfall(read_vector_info(vectors_folder(out, built.info)))):
        print(f"the vectors: {short}", file=sys.stderr)


def info(folder: Path, *, as_json: bool) -> None:
    """Print the contents of an index.

    Args:
        folder: Folder of the index.
        as_json: Print one JSON line instead.
    """
    import msgspec

    from pyrag.retrieval.index import open_generation, open_index, read_info, vectors_folder
    from pyrag.retrieval.indexing.record_database import Records
    from pyrag.retrieval.vectors.faiss_index import read_vector_info

    about = read_info(folder)
    records = open_generation(folder, Records)
    try:
        problems, bad = records.problems(), records.notes.bad_records()
        unread, remarks = records.notes.listed("unread"), records.notes.listed("remark")
    finally:
        records.close()
    generation = folder / about.generation
    sizes = {part.name: _size(part) for part in sorted(generation.glob("*/"))}
    vectors = read_vector_info(vectors_folder(folder, about)) if about.embedder else None
    fields = open_index(folder).selector.fields
    if as_json:
        left_out = [{"file": name, "reason": reason} for name, reason in problems]
        lines = [{"file": name, "reason": reason} for name, reason in bad]
        facts = {**msgspec.to_builtins(about), "vectors": msgspec.to_builtins(vectors), "fields": fields}
        items = {"left_out": left_out, "left_out_records": lines}
        items["remarks"] = [{"file": name, "remark": remark} for name, remark in remarks]
        items["unread"] = [{"kind": name, "files": count} for name, count in unread]
        print_json({"index": str(folder), **facts, **items, "bytes": _size(generation), "parts": sizes})
        return
    passages, files = counted(about.passages, "passage"), counted(about.files, "file")
    print(f"{folder}: {about.kind}, {passages} of {files}, built {about.created}")
    print(f"  from {', '.join(about.sources) or 'nothing any more'}")
    if about.language:
        print(f"  language: {language_words(about)}")
    parts = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
    print(f"  {_size(generation) / 1e6:.1f} MB ({parts}) in {about.generation}")
    if fields:
        descriptions = [f"{name} ({count})" for name, count in list(fields.items())[:_FIELDS]]
        more = f" and {len(fields) - _FIELDS} more" if len(fields) > _FIELDS else ""
        print(printable(f"  metadata: {', '.join(descriptions)}{more}"))
    if vectors:
        print(f"  vectors of {about.embedder}: {described(vectors)}")
        if short := shortfall(vectors):
            print(f"  {short}")
    print_unread(unread)
    print_remarks(remarks)
    print_left_out(problems, len(problems), bad, about.bad_records)


def search(folder: Path, query: str, topk: int, where: str | None, *, as_json: bool) -> None:
    """Print the passages that match a query.

    Args:
        folder: Folder of the index.
        query: Words or a question.
        topk: Maximum number of passages.
        where: Filter of passages by their metadata. None for no filter.
        as_json: Print one JSON line instead.
    """
    from pyrag.retrieval import open_retriever
    from pyrag.retrieval.filters.language import filter_of
    from pyrag.retrieval.protocol import filter_verdict, passages_of

    async def matching_passages() -> Any:
        retriever = open_retriever(folder)
        try:
            passing = filter_of(where)
            if passing is not None:
                for sentence in (await filter_verdict(retriever, passing)).sentences:
                    _tell_note(sentence)
            return await passages_of(retriever, query, topk, _tell_note, passing)
        finally:
            await retriever.aclose()

    passages = asyncio.run(matching_passages())
    if as_json:
        print_json(passages)
        return
    for number, passage in enumerate(passages, 1):
        parts = (
            "".join(f", {name} {score:.3f}" for name, score in passage.parts.items()) if len(passage.parts) > 1 else ""
        )
        found_at = f"{passage.title or passage.id} ({passage.score:.3f}{parts}) {passage.place}"
        facts = f"\n   {shorten(field_words(passage.metadata), _MAX_TEXT)}" if passage.metadata else ""
        print(printable(f"{number}. {found_at}\n   {shorten(passage.text, _MAX_TEXT)}{facts}"))
    if not passages:
        print("nothing found", file=sys.stderr)


def _tell_note(note: str) -> None:
    print(printable(note), file=sys.stderr)


def verify(folder: Path, *, as_json: bool) -> None:
    """Print the problems of an index; exit with code 1 if it has any.

    Args:
        folder: Folder of the index.
        as_json: Print one JSON line instead.
    """
    from pyrag.retrieval.indexing.verify import verify_index

    report = verify_index(folder)
    if as_json:
        print_json(report)
    elif report.problems:
        for problem in report.problems:
            print(f"FAIL {problem}")
        print(f"build it again with pyrag index PATH... --out {folder} --rebuild", file=sys.stderr)
    else:
        print(f"ok   {counted(report.passages, 'passage')}, in the records and in {', '.join(report.parts)}")
    if report.problems:
        sys.exit(1)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class _Progress:
    """Display of passages, rate and time left on stderr; silent unless stderr is a terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = 0.0

    def __call__(self, progress: IndexProgress) -> None:
        now = time.perf_counter()
        if self._on and now - self._shown > 0.1:
            self._shown = now
            print(f"\r\033[K{line(progress)} ", end="", file=raw_stream(sys.stderr), flush=True)

    def end(self) -> None:
        if self._on:
            print("\r\033[K", end="", file=raw_stream(sys.stderr), flush=True)


def line(progress: IndexProgress) -> str:
    """Describe the state of a build."""
    seconds = max(progress.seconds, 1e-9)
    words = f"{counted(progress.passages, 'passage')}, {progress.passages / seconds:.0f}/s"
    if not progress.done:
        return words
    remaining = seconds * (progress.total - progress.done) / progress.done
    return f"{words}, {100 * progress.done / max(progress.total, 1):.0f} %, {_time(remaining)} left"


def _time(seconds: float) -> str:
    hours = seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.1f} h"
