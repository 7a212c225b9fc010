"""Embedding with onnxruntime: without torch, and with the first vector within half a second.

A folder holds `model.onnx` (or `onnx/model.onnx`, or `embedder.int8.onnx` as `make reader` writes it), `tokenizer.json`
and, written by `export_onnx`, `pyrag-embedding.json`, which names the model and how to use it. Without this file, the
folder's name determines the family (`fingerprint`). The vectors of a model with one vector per token are pooled here.
`BUNDLED` is the folder that comes with the package.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.packages import NETWORKS, require_packages
from pyrag._io.specs import expanded
from pyrag._io.threads import cores, in_thread
from pyrag.errors import DataError
from pyrag.networks import wordpiece
from pyrag.networks.onnx import open_network
from pyrag.retrieval.embedders.fingerprint import Fingerprint, fingerprint_of

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

RECIPE = "pyrag-embedding.json"
BUNDLED = Path(__file__).parents[2] / "embedded" / "model"
MAX_TOKENS = 256
_NETWORKS = ("model.onnx", "onnx/model.onnx", "embedder.int8.onnx")


class OnnxBackend:
    """Backend for a folder, whose model is loaded on first use."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = expanded(folder)
        self._loading = threading.Lock()  # several event loops may use one object

    async def fingerprint(self) -> Fingerprint:
        return (await self._loaded()).fingerprint

    async def encode(self, texts: Sequence[str]) -> Matrix:
        return await in_thread((await self._loaded()).encode, texts)

    async def aclose(self) -> None:
        self.__dict__.pop("_model", None)

    async def _loaded(self) -> OnnxModel:
        return self._model if "_model" in self.__dict__ else await in_thread(self._load)

    def _load(self) -> OnnxModel:
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> OnnxModel:
        return OnnxModel(self._folder, cores())


class OnnxModel:
    """Loaded model with a synchronous interface.

    Raises:
        DataError: The folder holds no model that can be loaded.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._session = open_session(folder, threads)
        self._tokenizer = open_tokenizer(folder)
        self._inputs = {item.name for item in self._session.get_inputs()}
        self.fingerprint = self._described(folder)
        self._tokenizer.enable_truncation(self.fingerprint.max_tokens)
        self._tokenizer.no_padding()

    def _described(self, folder: Path) -> Fingerprint:
        import msgspec

        path = folder / RECIPE
        try:
            if path.exists():
                return msgspec.json.decode(path.read_bytes(), type=Fingerprint)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            raise DataError(f"{path} cannot be read ({error}): export the model again") from error
        dimension = self._session.get_outputs()[0].shape[-1]
        return fingerprint_of(folder.name, dimension, max_tokens=MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return one row per text, each computed separately.

        Int8 activations are scaled over the whole input, so in a batch, a vector would depend on the other texts.
        Batches are also no faster on a CPU.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.fingerprint.dimension), np.float32)
        for row, encoding in enumerate(self._tokenizer.encode_batch([clean(text) for text in texts])):
            if encoding.ids:
                vectors[row] = self._run(encoding.ids)
        return normalise(vectors) if self.fingerprint.normalised else vectors

    def _run(self, tokens: list[int]) -> Any:
        import numpy as np

        ids = np.asarray([tokens], np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: feeds[name] for name in self._inputs})[0][0]
        return output if output.ndim == 1 else pool(output, self.fingerprint.pooling)


def pool(states: Any, how: str) -> Any:
    """Reduce token states to one vector.

    Args:
        states: Array [tokens, d].
        how: Way of pooling: `cls`, `last` or `mean`.

    Returns:
        Array [d].
    """
    return states[0] if how == "cls" else states[-1] if how == "last" else states.mean(0)


def normalise(vectors: Matrix) -> Matrix:
    import numpy as np

    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12), np.float32)


def clean(text: str) -> str:
    """Replace lone surrogates, which cannot be passed to Rust code."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def open_session(folder: Path, threads: int) -> Any:
    """Open the network in a folder.

    Args:
        folder: Folder with `model.onnx`.
        threads: Number of threads that a run may use.

    Raises:
        DataError: The network is missing or cannot be loaded.
        ConfigError: onnxruntime or NumPy is not installed.
    """
    path = next((folder / name for name in _NETWORKS if (folder / name).is_file()), None)
    if path is None:
        raise DataError(
            f"{folder} holds no model.onnx: name a folder that pyrag.retrieval.embedders.export_onnx has written"
        )
    require_packages(f"the network {path}", NETWORKS)
    try:
        return open_network(path, threads)
    except Exception as error:  # onnxruntime's classes derive directly from Exception
        reason = str(error).partition("\n")[0][:200]
        raise DataError(f"{path} cannot be loaded ({reason}): export the model again") from error


def open_tokenizer(folder: Path) -> Any:
    """Open the tokenizer in a folder.

    Raises:
        DataError: The tokenizer is missing or cannot be read.
        ConfigError: A package is not installed.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise DataError(f"{folder} holds no tokenizer.json: copy it from the model's folder")
    try:
        return wordpiece.open_tokenizer(path)
    except ValueError as error:
        raise DataError(f"{path} cannot be read ({error}): copy it from the model's folder again") from error
