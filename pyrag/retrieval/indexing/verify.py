"""Verification of an index: checksums of its files, and that each part finds exactly the recorded passages.

Ids are compared by their number and the sum of their hashes, which needs no memory; only where these differ are they
looked at one by one, to name some.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from pyrag.errors import DataError
from pyrag.retrieval.index import VECTORS, read_info
from pyrag.retrieval.indexing.bm25_part import KIND, Bm25Part
from pyrag.retrieval.indexing.checksums import cut_files, wrong_files
from pyrag.retrieval.indexing.records import Records, hash64

_NAMED = 3  # ids in a message


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """`problems` are sentences; none where the index is whole."""

    index: str
    generation: str
    passages: int
    parts: tuple[str, ...]
    problems: tuple[str, ...]


def verify_index(path: str | Path) -> VerifyReport:
    """Check an index. Raises `DataError` if the folder is none. A generation that is replaced meanwhile is checked
    again."""
    while True:
        info = read_info(path)
        generation = Path(path) / info.generation
        parts = tuple(sorted(one.name for one in generation.glob("*/")))
        problems = tuple(_problems(generation, info.passages, parts))
        if read_info(path).generation == info.generation:
            return VerifyReport(
                index=str(path), generation=info.generation, passages=info.passages, parts=parts, problems=problems
            )


def _problems(generation: Path, passages: int, parts: Iterable[str]) -> Iterator[str]:
    yield from wrong_files(generation)
    try:
        records = Records(generation)
    except sqlite3.Error as error:
        yield f"the records cannot be read ({error})"
        return
    try:
        yield from records.faults()
        if records.count("passages") != passages:
            yield f"there are records of {records.count('passages')} passages, and there should be {passages}"
        wanted = _sum(records.ids())
        cut = any(name.startswith(f"{VECTORS}/") for name in cut_files(generation))
        for part in parts:
            if part != VECTORS or not cut:  # FAISS may crash on such a file
                yield from _faults_of(part, generation / part, wanted, records)
    except sqlite3.Error as error:
        yield f"the records cannot be read ({error})"
    finally:
        records.close()


def _faults_of(part: str, folder: Path, wanted: tuple[int, int], records: Records) -> Iterator[str]:
    try:
        if _sum(_ids(part, folder)) != wanted:
            yield from _differences(part, folder, records)
    except (ValueError, OSError, RuntimeError, DataError) as error:
        yield f"the part {part} cannot be read ({error})"


def _ids(part: str, folder: Path) -> Iterator[str]:
    if part == KIND:
        return Bm25Part().ids(folder)
    if part == VECTORS:
        from pyrag.retrieval.vectors.faiss_index import open_vectors

        return open_vectors(folder).ids()
    raise DataError("this pyrag does not know it")


def _differences(part: str, folder: Path, records: Records) -> Iterator[str]:
    seen: set[int] = set()
    unknown: list[str] = []
    twice: list[str] = []
    ids = _ids(part, folder)
    while some := list(islice(ids, 1000)):
        known = records.known(some)
        for one in some:
            key = hash64(one)
            (unknown if one not in known else twice if key in seen else []).append(one)
            seen.add(key)
    missing = [one for one in records.ids() if hash64(one) not in seen]
    for what, some in (("lacks", missing), ("has twice", twice), ("has and should not", unknown)):
        if some:
            yield f"the part {part} {what} {len(some)} passages, such as {', '.join(map(repr, some[:_NAMED]))}"


def _sum(ids: Iterable[str]) -> tuple[int, int]:
    count = total = 0
    for one in ids:
        count += 1
        total += hash64(one)
    return count, total
