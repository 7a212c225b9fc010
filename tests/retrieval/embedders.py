"""Embedders for tests: vectors from hashed words, so that texts that share words are near each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrag.retrieval.embedders.embedding import TextEmbedder
from pyrag.retrieval.embedders.fingerprint import Fingerprint

DIMENSION = 64


def vector(text: str) -> Any:
    """Sum of a random direction for each word, of length 1."""
    total = np.zeros(DIMENSION, np.float32)
    for word in re.findall(r"\w+", text.casefold()):
        seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4).digest(), "little")
        total += np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return total / max(float(np.linalg.norm(total)), 1e-9)


class WordsBackend:
    """A `Backend`; `batches` records what it was asked for."""

    def __init__(self, model: str = "words", prefix: str = "") -> None:
        self.batches: list[list[str]] = []
        self.closed = False
        self._print = Fingerprint(model=model, dimension=DIMENSION, query_prefix=prefix)

    async def fingerprint(self) -> Fingerprint:
        return self._print

    async def encode(self, texts: Sequence[str]) -> Any:
        self.batches.append(list(texts))
        return np.stack([vector(text) for text in texts])

    async def aclose(self) -> None:
        self.closed = True


def words_embedder(**options: Any) -> TextEmbedder:
    return TextEmbedder(WordsBackend(**options), "words")
