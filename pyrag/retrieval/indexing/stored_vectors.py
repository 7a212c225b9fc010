"""Vectors released with a corpus, read from a flat FAISS index instead of being computed.

The index is memory-mapped. Row N belongs to the passage whose id is N, as in Search-R1's and FlashRAG's corpora.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.embedders.embedding import TextEmbedder
from pyrag.retrieval.embedders.fingerprint import Fingerprint, family_of, fingerprint_of
from pyrag.retrieval.indexing.dense_part import DensePart
from pyrag.retrieval.vectors.faiss_index import Layout
from pyrag.retrieval.vectors.folder import BuildHere
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix


def stored_part(path: Path, model: str, layout: Layout | None = None) -> DensePart:
    """Return a dense part that reads its vectors from a file. Queries need sentence-transformers and the model.

    Args:
        path: Flat FAISS index, whose row N belongs to the passage N.
        model: Model that computed the vectors.
        layout: Layout of the index to build.

    Raises:
        DataError: The file is not a flat FAISS index.
    """
    vectors = StoredVectors(path)
    return DensePart(TextEmbedder(_Declared(model, vectors.dimension), f"st:{model}"), layout, vectors)


class StoredVectors(BuildHere):
    """Workers that look up stored vectors."""

    ahead = 0

    def __init__(self, path: Path) -> None:
        import faiss

        try:
            index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            reason = str(error).rpartition("Error: ")[2].partition("\n")[0][:200]
            raise DataError(f"{path} is not a complete FAISS index ({reason}): fetch it again") from error
        if not isinstance(index, faiss.IndexFlat):
            raise DataError(f"{path} is a {type(index).__name__}: its vectors can only be taken from a flat index")
        self._path = path
        self._index = index
        self.dimension: int = index.d

    def embed(self, passages: Sequence[Passage]) -> Callable[[], Any]:
        return lambda: self._rows([passage.id for passage in passages])

    def _rows(self, ids: list[str]) -> Any:
        import numpy as np

        for key in ids:
            if not (key.isascii() and key.isdigit() and int(key) < self._index.ntotal):
                raise DataError(
                    f"the passage {key!r} has no vector among the {self._index.ntotal} of {self._path}, where row N "
                    "belongs to the passage N: use the corpus that the vectors were made of"
                )
        return self._index.reconstruct_batch(np.array(ids, np.int64))

    def close(self) -> None:
        """Do nothing, since the file is unmapped when the object is deleted."""


class _Declared:
    """Backend that declares a model without loading it, since all vectors already exist."""

    def __init__(self, model: str, dimension: int) -> None:
        assert family_of(model) is not None, "a released corpus names a model of the table"
        self._fingerprint = fingerprint_of(model, dimension)

    async def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def encode(self, texts: Sequence[str]) -> Matrix:
        raise ConfigError(f"these vectors were made elsewhere: open {self._fingerprint.model} to embed more")

    async def aclose(self) -> None:
        """Do nothing."""
