"""Embedding by an OpenAI-compatible `POST {base}/embeddings`: vLLM, TEI, Ollama, llama.cpp, hosted services.

The embedding server is independent of the model server. Prefixes come from the model's family, since servers do not add
them. Vectors arrive as lists of numbers, and are normalised to length 1 unless the family's vectors are not.
`pyrag._io.http.client` handles connections, retries and faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pyrag._io.http.client import HttpService
from pyrag._io.http.errors import ReplyFormError
from pyrag._io.http.options import EMBEDDER_LIMIT, Transport
from pyrag.llm.clients.headers import with_headers
from pyrag.llm.clients.openai import DEFAULT_TRANSPORT, KEY_VARIABLES, key_from_environment
from pyrag.retrieval.embedders.fingerprint import Fingerprint, family_of, fingerprint_of

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_BATCH = 64  # texts a request: hosted services take 2,048, small servers much less
_AT_ONCE = 4
_CURE = "start it, or name another with --embedder openai:MODEL@http://host:port/v1"
_CURES = {
    400: "correct what it complains about (a text that is too long: index with smaller chunks)",
    401: f"set {KEY_VARIABLES[1]} or {KEY_VARIABLES[0]} to a valid key",
    404: "check the model's name and that the URL ends in /v1",
}


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int = -1


class _EmbeddingsReply(msgspec.Struct):
    data: list[_Item]


_decoder = msgspec.json.Decoder(_EmbeddingsReply)


class OpenAIBackend:
    """Embedder that asks an OpenAI-compatible server for vectors. `timeout` limits each attempt, in seconds."""

    def __init__(
        self,
        model: str,
        url: str,
        *,
        timeout: float = 30.0,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        self._model = model
        self._family = family_of(model)
        self._dimension = 0
        self._service = HttpService(
            url,
            name="server of embeddings",
            timeout=timeout,
            headers=with_headers(key_from_environment()),
            cure=_CURE,
            cures=_CURES,
            patience="the setting retrieve_timeout",
            limit=EMBEDDER_LIMIT,
            transport=transport,
        )

    async def fingerprint(self) -> Fingerprint:
        """Return the fingerprint. The first call requests a vector from the server to find out its length."""
        if not self._dimension:
            await self._request(["dimension"])
        return fingerprint_of(self._model, self._dimension)

    async def encode(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        turns = asyncio.Semaphore(_AT_ONCE)

        async def encode_slice(slice_: Sequence[str]) -> Matrix:
            async with turns:
                return await self._request(slice_)

        slices = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate(await asyncio.gather(*map(encode_slice, slices)))

    async def _request(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        def decode(content: bytes) -> Matrix:
            vectors = np.asarray(_ordered(_decoder.decode(content).data, len(texts)), np.float32)
            if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
                raise ReplyFormError("vectors that are empty or hold no numbers")
            if self._dimension and vectors.shape[1] != self._dimension:
                raise ReplyFormError(f"vectors of {vectors.shape[1]} numbers after such of {self._dimension}")
            return vectors

        inputs = [text.encode("utf-8", "replace").decode() for text in texts]
        body = {"model": self._model, "input": inputs, "encoding_format": "float"}
        vectors = await self._service.post_json("/embeddings", body, decode)
        self._dimension = vectors.shape[1]
        if self._family is not None and not self._family.normalised:
            return vectors
        from pyrag.retrieval.embedders.onnx import normalise

        return normalise(vectors)

    async def aclose(self) -> None:
        await self._service.aclose()


def _ordered(items: list[_Item], count: int) -> list[list[float]]:
    """Return the vectors in the order of the texts, by `index` if the server sends it."""
    if len(items) != count:
        raise ReplyFormError(f"{len(items)} vectors for {count} texts")
    if all(item.index >= 0 for item in items):
        items = sorted(items, key=lambda item: item.index)
    return [item.embedding for item in items]
