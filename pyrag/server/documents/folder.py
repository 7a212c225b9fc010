"""Documents that belong to an index folder, each a file in a folder inside it, from which the index is updated.

Each file holds a record with id, title, text and metadata; `pyrag.retrieval.sent` names the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag._io.files import AtomicFile
from pyrag.errors import DataError
from pyrag.retrieval.index import Built, embedder_of, language_of, read_info, vectors_folder
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.part_protocol import Part
from pyrag.retrieval.sent import FOLDER, file_of
from pyrag.server.documents.update import update_sent_documents

if TYPE_CHECKING:
    from pyrag.retrieval.vectors.faiss_index import Layout


class DocumentFolder:
    """Documents of an index. The methods read and write files: call them in a thread, one at a time.

    Args:
        index: Folder of the index.
    """

    def __init__(self, index: Path) -> None:
        self._index = index
        self._folder = index / FOLDER

    def put(self, documents: Mapping[str, Mapping[str, Any]]) -> Built:
        """Add documents, or replace those with the same ids, and update the index.

        Args:
            documents: Documents by their ids, as objects with the fields of a record.

        Raises:
            PyRAGError: The index cannot be updated; documents and index are unchanged.
        """
        self._folder.mkdir(exist_ok=True)
        return self._changed({self._path(key): msgspec.json.encode(value) for key, value in documents.items()})

    def delete(self, key: str) -> Built | None:
        """Delete a document and update the index; return None if the document does not exist.

        Raises:
            PyRAGError: The index cannot be updated; documents and index are unchanged.
        """
        return self._changed({self._path(key): None}) if self._path(key).exists() else None

    def _path(self, key: str) -> Path:
        return file_of(self._index, key)

    def _changed(self, contents: Mapping[Path, bytes | None]) -> Built:
        before = {path: path.read_bytes() if path.exists() else None for path in contents}
        try:
            _write(contents)
            with _own_parts(self._index) as parts:
                return update_sent_documents(self._index, [path.name for path in contents], parts)
        except BaseException:
            _write(before)
            raise


def _write(contents: Mapping[Path, bytes | None]) -> None:
    for path, content in contents.items():
        if content is None:
            path.unlink(missing_ok=True)
        else:
            with AtomicFile(path) as new:
                new.write(content)


@contextmanager
def _own_parts(index: Path) -> Iterator[tuple[Part, ...]]:
    """Open the parts that an index has, and close them at the end."""
    info = read_info(index)
    words = Bm25Part(words=info.kind != "dense", language=language_of(index))
    if not (embedder := embedder_of(index)):
        yield (words,)
        return
    from pyrag.retrieval.embedders.embedding import open_embedder
    from pyrag.retrieval.indexing.dense_part import DensePart

    dense = DensePart(open_embedder(embedder, timeout=300.0), _layout(index))
    try:
        yield words, dense
    finally:
        dense.close()


def _layout(index: Path) -> Layout:
    from pyrag.retrieval.vectors.faiss_index import Layout, read_vector_info

    try:
        return read_vector_info(vectors_folder(index, read_info(index))).layout
    except DataError:
        return Layout()
