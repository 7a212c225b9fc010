"""Files of a segment of a vector index: ids by row, rows by id, and vectors while they are being collected.

    seg-X.vec        vectors as float16, row by row, from which a compaction builds new segments
    seg-X.ids        ids as UTF-8, one after another; .off holds the start of each
    seg-X.key        hashes of the ids in ascending order, and .row the row of each, to find ids by bisection

All files are memory-mapped, and never change after they are written. Writing only appends, and survives a kill:
complete rows are kept, and the rest is cut off.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.files import lock, sync

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyrag.retrieval.embedders.protocol import Matrix

SUFFIXES = (".vec", ".ids", ".off", ".key", ".row")
_SEPARATOR = b"\n"


class Gathering:
    """Vectors and ids for a future segment, in `PREFIX.vec` and `PREFIX.list`, which a later process may continue.

    `path` is the file of the vectors until `finish` or `discard`.
    """

    def __init__(self, prefix: Path, dimension: int) -> None:
        self.dimension = dimension
        self.path, self._list_path = _with(prefix, ".vec"), _with(prefix, ".list")
        self.ids = self._recovered()
        self._vectors = self.path.open("ab")
        self._list = self._list_path.open("ab")

    def __len__(self) -> int:
        return len(self.ids)

    def append(self, ids: Sequence[str], vectors: NDArray[Any]) -> None:
        """Write vectors, then ids, so that each id on the disk has a vector.

        Args:
            ids: Ids of the rows.
            vectors: Array [ids, d], stored as float16.
        """
        import numpy as np

        self._vectors.write(np.ascontiguousarray(vectors, np.float16).tobytes())
        self._vectors.flush()
        self._list.write(b"".join(_escaped(key) + _SEPARATOR for key in ids))
        self._list.flush()
        self.ids.extend(ids)

    def finish(self, prefix: Path) -> None:
        """Turn the collected files into the files of a segment."""
        self.close()
        _write_ids(self.ids, prefix)
        sync(self.path)
        self.path.rename(_with(prefix, ".vec"))
        self._list_path.unlink()

    def discard(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)
        self._list_path.unlink(missing_ok=True)

    def close(self) -> None:
        self._vectors.close()
        self._list.close()

    def _recovered(self) -> list[str]:
        """Return the ids whose vectors are complete, and cut off the rest."""
        if not (self._list_path.exists() and self.path.exists()):
            self.path.write_bytes(b"")
            self._list_path.write_bytes(b"")
            return []
        width = 2 * self.dimension
        lines = self._list_path.read_bytes().split(_SEPARATOR)[:-1]
        lines = lines[: self.path.stat().st_size // width]
        os.truncate(self.path, len(lines) * width)
        os.truncate(self._list_path, sum(map(len, lines)) + len(lines))
        return [_unescaped(line) for line in lines]


class RowIds:
    """Ids of a segment's rows, memory-mapped.

    Raises:
        OSError: A file is missing or cannot be read.
        ValueError: The files do not match each other.
    """

    def __init__(self, prefix: Path) -> None:
        self._bytes = _bytes(_with(prefix, ".ids"))
        self._starts = memoryview(mapped(_with(prefix, ".off"), "u8"))  # returns an int in 40 ns, an array takes 3000
        self._keys = mapped(_with(prefix, ".key"), "u8")
        self._rows = mapped(_with(prefix, ".row"), "u4")
        if not len(self) == len(self._keys) == len(self._rows) or self._starts[-1] != len(self._bytes):
            raise ValueError(f"the files of {prefix.name} with ids do not match each other")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[str]:
        return (self.at(row) for row in range(len(self)))

    def at(self, row: int) -> str:
        return self.names([row])[0]

    def names(self, rows: Iterable[int]) -> list[str]:
        """Return the ids of rows."""
        data, starts = self._bytes, self._starts
        return [data[starts[row] : starts[row + 1]].decode("utf-8", "surrogatepass") for row in rows]

    def of_shard(self, shard: int, shards: int) -> Any:
        """Return the rows of a shard in ascending order. All shards have about the same size.

        Args:
            shard: Number of the shard, from 0.
            shards: Number of shards.
        """
        import numpy as np

        return np.sort(self._rows[self._keys % np.uint64(shards) == shard])

    def rows_of_keys(self, keys: Any) -> Any:
        """Return the rows whose ids have one of some keys, in ascending order.

        Args:
            keys: Unsigned hashes of ids in ascending order, as in `filters.selection`.
        """
        import numpy as np

        if not len(keys):
            return np.zeros(0, np.uint32)
        places = np.minimum(keys.searchsorted(self._keys), len(keys) - 1)
        return np.sort(self._rows[keys[places] == self._keys])

    def rows(self, ids: Iterable[str]) -> Iterator[int]:
        """Yield the rows of those ids that exist; several rows if an id was written more than once."""
        for passage_id in ids:
            key = _key(passage_id)
            at = int(self._keys.searchsorted(key))
            while at < len(self._keys) and int(self._keys[at]) == int(key):
                row = int(self._rows[at])
                if self.at(row) == passage_id:
                    yield row
                at += 1


def _write_ids(ids: Sequence[str], prefix: Path) -> None:
    """Write the id files of a segment."""
    import numpy as np

    encoded = [key.encode("utf-8", "surrogatepass") for key in ids]
    starts = np.zeros(len(ids) + 1, np.uint64)
    np.cumsum([len(item) for item in encoded], out=starts[1:], dtype=np.uint64)
    keys = np.array([_key(key) for key in ids], np.uint64)
    order = np.argsort(keys, kind="stable")
    with _with(prefix, ".ids").open("wb") as file:
        file.writelines(encoded)
    save(_with(prefix, ".off"), starts)
    save(_with(prefix, ".key"), keys[order])
    save(_with(prefix, ".row"), order.astype(np.uint32))
    sync(_with(prefix, ".ids"))


def mapped(path: Path, dtype: str) -> Any:
    """Map a file as an array. `np.load` is not thread-safe with Python 3.11, since it parses headers as Python.

    Args:
        path: File of raw numbers.
        dtype: Type of a number.
    """
    import numpy as np

    return np.memmap(path, dtype, "r").view(np.ndarray) if path.stat().st_size else np.zeros(0, dtype)


def _bytes(path: Path) -> mmap.mmap | bytes:
    """Return a file, mapped, with slices that are `bytes`. An empty file cannot be mapped."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def map_vectors(path: Path, count: int, dimension: int) -> Any:
    """Map the vectors of a segment.

    Args:
        path: File of float16 rows.
        count: Number of rows.
        dimension: Length of a row.
    """
    import numpy as np

    shape = (count, dimension)
    return np.memmap(path, np.float16, "r", shape=shape) if count else np.zeros(shape, np.float16)


def copy_rows(vectors: Any, rows: Any) -> Matrix:
    """Copy rows as float32, and release the pages of a mapped file, which count towards the process's memory.

    Args:
        vectors: Array [rows, d].
        rows: Row numbers.
    """
    import numpy as np

    copies = np.ascontiguousarray(vectors[rows], np.float32)
    if isinstance(vectors.base, mmap.mmap):
        vectors.base.madvise(mmap.MADV_DONTNEED)
    return copies


def save(path: Path, array: Any) -> None:
    """Write an array to the disk.

    Args:
        path: File to write.
        array: Array of raw numbers.
    """
    array.tofile(path)
    sync(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder inside the block, after waiting if another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _with(prefix: Path, suffix: str) -> Path:
    return prefix.with_name(prefix.name + suffix)


def _key(passage_id: str) -> Any:
    import numpy as np

    digest = hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _escaped(passage_id: str) -> bytes:
    return passage_id.encode("utf-8", "surrogatepass").replace(b"\\", b"\\\\").replace(b"\n", b"\\n")


def _unescaped(line: bytes) -> str:
    pieces = (piece.replace(b"\\n", b"\n") for piece in line.split(b"\\\\"))
    return b"\\".join(pieces).decode("utf-8", "surrogatepass")
