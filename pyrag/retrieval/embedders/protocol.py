"""Protocols of embedding: the `Embedder` that retrievers call and the `Backend` behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pyrag.retrieval.embedders.fingerprint import Fingerprint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]


class Embedder(Protocol):
    """An embedding model as retrievers and index builds use it."""

    @property
    def name(self) -> str:
        """Spec string, without secrets."""
        ...

    async def fingerprint(self) -> Fingerprint:
        """Return the model's fingerprint; may load the model or ask the server. Raises `PyRAGError`."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [texts, dimension]; the query prefix is added here."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [texts, dimension]; the passage prefix is added here."""
        ...

    async def aclose(self) -> None:
        """Release the model or its connections."""
        ...


class Backend(Protocol):
    """An engine that turns texts, prefixes included, into vectors."""

    async def fingerprint(self) -> Fingerprint:
        """Return the model's fingerprint. Raises `PyRAGError`."""
        ...

    async def encode(self, texts: Sequence[str]) -> Matrix:
        """Return float32 [texts, dimension]."""
        ...

    async def aclose(self) -> None:
        """Release the model or its connections."""
        ...


def passage_text(title: str, text: str) -> str:
    """Return the text of a passage that is embedded.

    Args:
        title: Title of the passage; may be empty.
        text: Its text.
    """
    return f"{title}\n{text}" if title else text
