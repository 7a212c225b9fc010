"""The embedder that comes with the package, its real weights: meaning, independence of neighbours, its name."""

from __future__ import annotations

import numpy as np
import pytest

from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.embedders.fingerprint import Fingerprint

TEXTS = [
    "Mill\nThe mill was founded by Ann.",
    "Zoo\nA zebra and two otters live behind the pond, and nobody knows how they came there.",
    "Harbour\nThe ship sank in the night of the storm.",
]


async def test_a_passage_that_means_the_same_is_nearest() -> None:
    embedder = open_embedder("bundled")
    passages = await embedder.embed_passages(TEXTS)
    queries = await embedder.embed_queries(["Who set up the factory?", "striped animals", "a vessel that went down"])
    assert (queries @ passages.T).argmax(1).tolist() == [0, 1, 2]
    assert passages.shape == (3, 384)
    assert np.linalg.norm(passages, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    await embedder.aclose()


async def test_a_vector_depends_on_its_text_alone() -> None:
    embedder = open_embedder("bundled")
    together = await embedder.embed_passages(TEXTS)
    alone = [await embedder.embed_passages([text]) for text in reversed(TEXTS)]
    assert np.array_equal(together, np.concatenate(alone[::-1]))
    await embedder.aclose()


async def test_an_index_of_the_same_model_elsewhere_may_be_asked() -> None:
    embedder = open_embedder("bundled")
    hub = Fingerprint(model="sentence-transformers/all-MiniLM-L6-v2", dimension=384, max_tokens=256)
    assert (await embedder.fingerprint()).difference(hub) == ""
    await embedder.aclose()
