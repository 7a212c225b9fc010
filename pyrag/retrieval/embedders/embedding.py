"""Embedder with several backends, and the spec strings that name them.

    bundled                all-MiniLM-L6-v2 in int8, which comes with the package: nothing to download
    onnx:DIR               onnxruntime over a folder
    st:NAME                any sentence-transformers model of the hub, or a folder (extra `dense`)
    openai:MODEL@URL       an OpenAI-compatible /v1/embeddings

`TextEmbedder` adds prefixes to texts, collects concurrent queries into batches and caches recent queries. A `Backend`
turns a batch of texts into vectors. A `Fingerprint` names the model of a vector, so that an index can refuse queries
embedded by another model. It does not name the engine: an index that was embedded with torch on a GPU may be searched
with ONNX on a laptop (cosine 0.994 for int8).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrag._io.http.options import Transport
from pyrag._io.packages import NETWORKS, require_packages
from pyrag._io.redaction import without_secrets
from pyrag._io.specs import Spec, parse_spec
from pyrag.errors import ConfigError
from pyrag.retrieval.embedders.batching import Batcher
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.embedders.protocol import Backend

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

BUNDLED = "bundled"
_DIRECT = Transport()
_FORMS = f"{BUNDLED}, onnx:DIR, st:NAME or openai:MODEL@http://host:port/v1"
_SLICE = 256  # passages handed to a backend at once, so that queries get their turn in between


class TextEmbedder:
    """Embedder over a backend. The first query of a batch waits 3 ms for others."""

    def __init__(self, backend: Backend, name: str) -> None:
        self.backend = backend
        self._name = name
        self._queries = Batcher(self._encode_queries, window=0.003, max_batch=64, cached=4096)

    @property
    def name(self) -> str:
        return self._name

    async def fingerprint(self) -> Fingerprint:
        return await self.backend.fingerprint()

    async def embed_queries(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return await self._nothing()
        import numpy as np

        return np.stack(await self._queries.get_all(texts))

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return await self._nothing()
        import numpy as np

        prefix = (await self.fingerprint()).passage_prefix
        slices = [texts[start : start + _SLICE] for start in range(0, len(texts), _SLICE)]
        return np.concatenate([await self.backend.encode([prefix + text for text in part]) for part in slices])

    async def aclose(self) -> None:
        await self.backend.aclose()

    async def _encode_queries(self, texts: Sequence[str]) -> Matrix:
        prefix = (await self.fingerprint()).query_prefix
        return await self.backend.encode([prefix + text for text in texts])

    async def _nothing(self) -> Matrix:
        import numpy as np

        return np.empty((0, (await self.fingerprint()).dimension), np.float32)


def open_embedder(spec: str, *, timeout: float = 30.0, transport: Transport = _DIRECT) -> TextEmbedder:
    """Return the embedder that a spec names, without loading or contacting anything.

    Args:
        spec: `bundled`, `onnx:DIR`, `st:NAME` or `openai:MODEL@URL`.
        timeout: Seconds for one request to a server.
        transport: Proxy and certificates for a server.

    Raises:
        ConfigError: The spec is malformed, or a package is missing.
    """
    kind, rest = parse_spec(spec)
    local = spec.strip() == BUNDLED or kind == "onnx"
    require_packages(f"the embedder {without_secrets(spec.strip())}", NETWORKS if local else ("numpy",))
    if spec.strip() == BUNDLED:
        from pyrag.retrieval.embedders import onnx

        return TextEmbedder(onnx.OnnxBackend(onnx.BUNDLED), BUNDLED)
    if kind not in ("onnx", "st", "openai") or not rest:
        raise ConfigError(f"{spec!r} names no embedder: write {_FORMS}")
    return TextEmbedder(open_backend(kind, rest, timeout, transport), without_secrets(spec.strip()))


def open_backend(kind: str, rest: str, timeout: float, transport: Transport) -> Backend:
    """Return the backend of a spec.

    Args:
        kind: Scheme of the spec, such as "onnx".
        rest: Spec after the scheme.
        timeout: Seconds for one request to a server.
        transport: Proxy, certificates and limits of requests.

    Raises:
        ConfigError: The spec of a server lacks the model or the URL.
    """
    if kind == "onnx":
        from pyrag.retrieval.embedders.onnx import OnnxBackend

        return OnnxBackend(rest)
    if kind == "st":
        from pyrag.retrieval.embedders.sentence_transformers import SentenceTransformersBackend

        return SentenceTransformersBackend(rest)
    from pyrag.retrieval.embedders.openai_embeddings import OpenAIBackend

    model, url = Spec(kind, rest).at_url
    if not (model and url):
        raise ConfigError(f"{kind}:{rest} names no server: write openai:MODEL@http://host:port/v1")
    return OpenAIBackend(model, url, timeout=timeout, transport=transport)
