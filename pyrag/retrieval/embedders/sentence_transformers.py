"""Embedding with sentence-transformers: any model of the hub or a folder, on CPU or GPU (extra `dense`).

Prefixes and pooling come from the model's family (`fingerprint`). A model without a family is used as it declares
itself, with the prompts in its configuration. Several processes or devices (see Ray for bulk embedding) and late
interaction are not supported.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.hub import unreachable
from pyrag._io.threads import in_thread
from pyrag.errors import ConfigError, DataError, install_extra
from pyrag.retrieval.embedders.fingerprint import Fingerprint, family_of

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_BATCH = 32
_POOLINGS = {"mean": "mean", "cls": "cls", "lasttoken": "last", "last": "last"}


class SentenceTransformersBackend:
    """Backend for a model that is loaded on first use."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._lock = threading.Lock()  # a model is loaded once, and encodes one batch at a time

    async def fingerprint(self) -> Fingerprint:
        return await in_thread(self._described)

    async def encode(self, texts: Sequence[str]) -> Matrix:
        return await in_thread(self._encode, texts)

    async def aclose(self) -> None:
        self.__dict__.pop("_model", None)

    def _encode(self, texts: Sequence[str]) -> Matrix:
        normalised = self._described().normalised
        with self._lock:
            vectors: Matrix = self._model.encode(
                list(texts),
                batch_size=_BATCH,
                prompt="",  # the texts include their prefixes
                normalize_embeddings=normalised,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return vectors.astype("float32", copy=False)

    def _described(self) -> Fingerprint:
        with self._lock:
            return self._fingerprint

    @cached_property
    def _fingerprint(self) -> Fingerprint:
        family, prompts = family_of(self._name), dict(self._model.prompts or {})
        normalises = any(type(part).__name__ == "Normalize" for part in self._model)
        return Fingerprint(
            model=self._name,
            dimension=int(_dimension(self._model)),
            query_prefix=family.query if family else prompts.get("query") or "",
            passage_prefix=family.passage if family else prompts.get("document") or prompts.get("passage") or "",
            pooling=_pooling(self._model),
            normalised=family.normalised if family else normalises,
            max_tokens=int(self._model.max_seq_length or 0),
        )

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ConfigError(f"st: embedding needs sentence-transformers: {install_extra('dense')}") from error
        try:
            offline = not Path(self._name).exists() and unreachable()
            model = SentenceTransformer(self._name, local_files_only=offline)
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise DataError(f"the embedding model {self._name} cannot be loaded ({reason}): check its name") from error
        family = family_of(self._name)
        if family is not None:
            _set_pooling(model, family.pooling)
        return model


def _dimension(model: Any) -> int:
    """Return the length of vectors. (sentence-transformers 5 renamed the method.)"""
    getter = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(getter())


def _pooling_part(model: Any) -> Any:
    return next((part for part in model if type(part).__name__ == "Pooling"), None)


def _pooling(model: Any) -> str:
    part = _pooling_part(model)
    mode = str(part.pooling_mode) if part is not None and hasattr(part, "pooling_mode") else _old_mode(part)
    return _POOLINGS.get(mode, mode)


def _old_mode(part: Any) -> str:
    return "model" if part is None else str(part.get_pooling_mode_str())


def _set_pooling(model: Any, pooling: str) -> None:
    """Set the pooling of a model. Without a declaration, the library uses the mean, regardless of the model."""
    if _pooling(model) == pooling:
        return
    for at, part in enumerate(model):
        if type(part).__name__ == "Pooling":
            mode = "lasttoken" if pooling == "last" else pooling
            model[at] = type(part)(_dimension(model), pooling_mode=mode)
