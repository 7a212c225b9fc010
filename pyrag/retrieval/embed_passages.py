"""Passages into a folder of vectors: embeds what is not there yet, in batches, and commits.

Whoever orchestrates a build says which passages came and which went; this keeps what a killed run has embedded and
holds one batch in memory. Left out: reading documents, deciding what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from pyrag.retrieval.embedding import passage_text
from pyrag.retrieval.faiss_index import VectorInfo
from pyrag.retrieval.threads import in_thread
from pyrag.retrieval.vector_folder import VectorFolder
from pyrag.trace import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedding import Embedder

BATCH = 256


async def embed_passages(
    folder: VectorFolder,
    passages: Iterable[Passage],
    embedder: Embedder,
    *,
    delete: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> VectorInfo:
    """Adds the passages, or replaces those whose ids are there, and deletes others, in one step at the end.

    `progress` is called with the number of passages so far, those of a killed run included. Raises `PyRAGError`.
    """
    with folder.writer() as writer:
        kept = set(writer.pending)
        count = 0
        waiting = iter(passages)
        while batch := list(islice(waiting, BATCH)):
            new = [passage for passage in batch if passage.id not in kept]
            if new:
                vectors = await embedder.embed_passages([passage_text(one.title, one.text) for one in new])
                writer.add([one.id for one in new], vectors)
            count += len(batch)
            if progress:
                progress(count)
        return await in_thread(writer.commit, delete)
