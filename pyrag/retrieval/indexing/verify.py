"""Verification of an index: checksums of its files, and whether each part contains exactly the recorded passages.

Ids are compared by their number and the sum of their hashes, which needs no memory. Only if these differ are ids
compared one by one, in order to name some of them.
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
from pyrag.retrieval.indexing.record_database import Records, hash64

_NAMED = 3  # ids in a message


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Report on an index. `problems` holds a sentence per problem, and is empty if the index is intact."""

    index: str
    generation: str
    passages: int
    parts: tuple[str, ...]
    problems: tuple[str, ...]


def verify_index(path: str | Path) -> VerifyReport:
    """Check an index; start again if the generation is replaced in the meantime.

    Raises:
        DataError: The folder is not an index.
    """
    while True:
        info = read_info(path)
        generation = Path(path) / info.generation
        parts = tuple(sorted(folder.name for folder in generation.glob("*/")))
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
        expected = _sum(records.ids())
        is_cut = any(name.startswith(f"{VECTORS}/") for name in cut_files(generation))
        for part in parts:
            if part != VECTORS or not is_cut:  # FAISS may crash on such a file
                yield from _faults_of(part, generation / part, expected, records)
    except sqlite3.Error as error:
        yield f"the records cannot be read ({error})"
    finally:
        records.close()


def _faults_of(part: str, folder: Path, expected: tuple[int, int], records: Records) -> Iterator[str]:
    try:
        if _sum(_ids(part, folder)) != expected:
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
        for key in some:
            hashed = hash64(key)
            (unknown if key not in known else twice if hashed in seen else []).append(key)
            seen.add(hashed)
    missing = [key for key in records.ids() if hash64(key) not in seen]
    for what, some in (("lacks", missing), ("has twice", twice), ("has and should not", unknown)):
        if some:
            yield f"the part {part} {what} {len(some)} passages, such as {', '.join(map(repr, some[:_NAMED]))}"


def _sum(ids: Iterable[str]) -> tuple[int, int]:
    count = total = 0
    for key in ids:
        count += 1
        total += hash64(key)
    return count, total
