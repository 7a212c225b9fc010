"""Protocols of embedding: the `Embedder` that retrievers use, and the `Backend` behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pyrag.retrieval.embedders.fingerprint import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Embedding model, as used by retrievers and index builds."""

    @property
    def name(self) -> str:
        """Spec string, without secrets."""
        ...

    async def fingerprint(self) -> Fingerprint:
        """Return the model's fingerprint; this may load the model or send a request to the server.

        Raises:
            PyRAGError: The model cannot be loaded, or the server fails.
        """
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Return an array of float32 [texts, dimension], after adding the query prefix to each text."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return an array of float32 [texts, dimension], after adding the passage prefix to each text."""
        ...

    async def aclose(self) -> None:
        """Release the model or its connections."""
        ...


class Backend(Protocol):
    """Engine that turns texts, which include their prefixes, into vectors."""

    async def fingerprint(self) -> Fingerprint:
        """Return the model's fingerprint.

        Raises:
            PyRAGError: The model cannot be loaded, or the server fails.
        """
        ...

    async def encode(self, texts: Sequence[str]) -> Matrix:
        """Return an array of float32 [texts, dimension]."""
        ...

    async def aclose(self) -> None:
        """Release the model or its connections."""
        ...


def passage_text(title: str, text: str) -> str:
    """Return the text that is embedded for a passage.

    Args:
        title: Title of the passage, which may be empty.
        text: Text of the passage.
    """
    return f"{title}\n{text}" if title else text
