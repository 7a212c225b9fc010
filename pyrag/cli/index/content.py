"""Contents of an index and results of builds, as text and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.cli.output import print_json
from pyrag.cli.views.terminal import printable
from pyrag.retrieval.words.languages import ENGLISH
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag.retrieval.index import Built, IndexInfo
    from pyrag.retrieval.vectors.faiss_index import VectorInfo

_SHOWN = 20  # limit of printed files, lines and rows that were left out
_NAMED = 5  # limit of files named in a remark


def list_files(folder: Path, *, as_json: bool) -> None:
    """Print the files of an index with the number of their passages.

    Args:
        folder: Folder of the index.
        as_json: Print one JSON line instead.
    """
    from pyrag.retrieval.index import read_info
    from pyrag.retrieval.removal import indexed_files

    info, files = read_info(folder), indexed_files(folder)
    if as_json:
        items = [{"file": name, "passages": count} for name, count in files]
        print_json({"index": str(folder), "sources": info.sources, "passages": info.passages, "files": items})
        return
    width = len(str(max((count for _, count in files), default=0)))
    for name, count in files:
        print(printable(f"{count:{width}}  {name}".replace("\n", "\\n")))
    if not files:
        print(f"{folder} is empty: add files with pyrag index PATH... --out {folder}", file=sys.stderr)


def outcome(built: Built, out: Path, seconds: float) -> str:
    """Return the result of a build or removal as text.

    Args:
        built: Result of the build or removal.
        out: Folder of the index.
        seconds: Duration.
    """
    changes = f"{built.added} added, {built.changed} changed, {built.removed} removed; {seconds:.1f} s"
    return f"{counted(built.info.passages, 'passage')} in {out} ({changes})"


def as_object(built: Built, out: Path, seconds: float) -> dict[str, Any]:
    """Return the result of a build or removal as a JSON object.

    Args:
        built: Result of the build or removal.
        out: Folder of the index.
        seconds: Duration.
    """
    return {
        "index": str(out),
        "passages": built.info.passages,
        "files": built.info.files,
        "added": built.added,
        "changed": built.changed,
        "removed": built.removed,
        "files_read": built.files_read,
        "left_out": [{"file": name, "reason": reason} for name, reason in built.problems],
        "left_out_records": [{"file": name, "reason": reason} for name, reason in built.bad_records],
        "removed_files": [{"file": name, "passages": count} for name, count in built.removed_files],
        "remarks": [{"file": name, "remark": remark} for name, remark in built.remarks],
        "unread": {kind: int(count) for kind, count in built.unread},
        "sent": list(built.sent),
        "language": built.info.language,
        "generation": built.info.generation,
        "seconds": seconds,
    }


def language_words(info: IndexInfo) -> str:
    """Return the language of an index, with a note if the embedded engine does not answer in it."""
    language = f"{info.language}{' (detected)' if info.detected else ''}"
    if info.language == ENGLISH:
        return language
    return f"{language}; the embedded engine answers in English only, so name a language model with --llm to ask"


def print_notes(built: Built) -> None:
    """Print removed files, the index's language, files that could not be indexed, and remarks on files."""
    if built.removed_files:
        names = [name for name, _ in built.removed_files]
        print(printable(f"no longer in the index: {_listed(names)}"), file=sys.stderr)
    if built.sent:
        print(printable(f"sent over HTTP, still in the index: {_listed(built.sent)}"), file=sys.stderr)
    if built.info.language not in ("", ENGLISH) and built.info.passages:
        print(f"language: {language_words(built.info)}", file=sys.stderr)
    print_unread(built.unread)
    print_left_out(built.problems, built.info.left_out, built.bad_records, built.info.bad_records)
    print_remarks(built.remarks)


def print_unread(unread: Sequence[tuple[str, str]]) -> None:
    """Print the kinds of files that were not read, and the packages to install for them.

    Args:
        unread: Pairs of a kind and its number of files.
    """
    from pyrag.errors import install_extra
    from pyrag.retrieval.documents.model import KNOWN, OFFICE, PACKED, is_read

    office = [(kind, count) for kind, count in unread if kind in OFFICE and not is_read(kind)]
    packed = [(kind, count) for kind, count in unread if kind in PACKED]
    others = [(kind, count) for kind, count in unread if kind not in OFFICE and kind not in PACKED]
    unpack = "unpack them and name the folder (a .zip is read unless it is inside another archive)"
    for kinds, cure in ((office, install_extra("office")), (packed, unpack), (others, f"convert them to {KNOWN}")):
        if kinds:
            names = ", ".join(f"{kind} {count}" for kind, count in kinds[:_SHOWN])
            more = f" and {len(kinds) - _SHOWN} more kinds" if len(kinds) > _SHOWN else ""
            print(printable(f"{names}{more} not read: {cure}"), file=sys.stderr)


def print_left_out(
    problems: Sequence[tuple[str, str]], files: int, bad_records: Sequence[tuple[str, str]], records: int
) -> None:
    """Print the files, and the records of other files, that could not be indexed.

    Args:
        problems: Pairs of a file and the reason.
        files: Number of such files.
        bad_records: Pairs of a file and the reason for one of its records.
        records: Number of such records.
    """
    for items, count, what in ((problems, files, "file"), (bad_records, records, "record")):
        if not count:
            continue
        print(f"left out {counted(count, what)}:", file=sys.stderr)
        for _, reason in items[:_SHOWN]:
            print(printable(f"  {reason}"), file=sys.stderr)
        if count > min(len(items), _SHOWN):
            print(f"  and {count - min(len(items), _SHOWN)} more, see pyrag index info --json", file=sys.stderr)


def print_remarks(remarks: Sequence[tuple[str, str]]) -> None:
    """Print one line per remark, with its files.

    Args:
        remarks: Pairs of a file and a remark on it.
    """
    by_remark: dict[str, list[str]] = {}
    for name, remark in remarks:
        by_remark.setdefault(remark, []).append(name)
    for remark, names in by_remark.items():
        print(printable(f"{remark}: {_listed(names)}"), file=sys.stderr)


def described(vectors: VectorInfo) -> str:
    """Describe the segments of vectors, grouped by kind."""
    kinds: dict[str, list[int]] = {}
    for segment in vectors.segments:
        kinds.setdefault(f"{segment.type} {segment.search}".strip(), []).append(segment.rows - segment.deleted)
    some = (f"{sum(rows)} in {len(rows)} x {kind}" for kind, rows in kinds.items())
    accuracy = "exact" if set(kinds) == {"Flat"} else f"recall {vectors.recall:.3f} on a sample of them"
    return f"{', '.join(some)}; {accuracy}"


def shortfall(vectors: VectorInfo) -> str:
    """Return a note if the vectors miss the requested recall, otherwise an empty text."""
    if vectors.recall >= vectors.target:
        return ""
    return f"their search reaches a recall of {vectors.recall:.3f}, not {vectors.target:g}: name another --type or auto"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
