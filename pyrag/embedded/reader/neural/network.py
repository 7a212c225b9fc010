"""Network of the neural reader: an int8 ONNX model that onnxruntime runs on one thread, one window at a time.

Int8 activations are scaled over the whole input, so in a batch, a passage's scores would depend on the other passages.
Batches are also no faster on a CPU. `onnxruntime` is imported when a model is first loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag.embedded.reader.neural.decode import MarkedSpan, best_spans
from pyrag.embedded.reader.neural.windows import Tokenizer, Window, windows
from pyrag.errors import ServiceError, install_extra
from pyrag.networks.onnx import open_network
from pyrag.networks.wordpiece import open_tokenizer

MODEL_FOLDER = Path(__file__).parents[2] / "model"
NETWORK = "reader.int8.onnx"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Parameters that turn margins into probabilities, fitted on held-out training questions; see the model card.

    Args:
        scale: Factor on a score.
        offset: Number added to a scaled score.
        about: Number added to the margin of an answer from a page about the question's subject.
        agrees: Number added to the margin of an answer that the lexical reader also gives.
        threshold: Minimum confidence of a known answer, between 0 and 1.
    """

    scale: float = 1.0
    offset: float = 0.0
    about: float = 0.0
    agrees: float = 0.0
    threshold: float = 0.5

    @property
    def least_score(self) -> float:
        """Minimum score of a known answer."""
        return (math.log(self.threshold / (1 - self.threshold)) - self.offset) / self.scale


@dataclass(frozen=True, slots=True)
class Model:
    """Loaded network, which several threads can use at once.

    Args:
        tokenizer: Tokenizer of the network.
        session: Session of onnxruntime.
        calibration: Calibration of the network's scores.
    """

    tokenizer: Tokenizer
    session: Any
    calibration: Calibration

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the best spans of all passages, best first.

        Args:
            question: Question; its first `QUESTION_TOKENS` tokens are used.
            texts: Title and text of each passage. Long texts are read in several windows.
            count: Maximum number of spans per window.
        """
        inputs = windows(self.tokenizer, question, texts)
        spans = [span for window in inputs for span in best_spans(window, self._scores(window), count)]
        return sorted(spans, key=lambda span: (-span.margin, span.passage, span.start))

    def _scores(self, window: Window) -> list[list[float]]:
        """Return the start and end score of each token of a window."""
        import numpy as np

        count = len(window.ids)
        types = np.zeros((1, count), dtype=np.int64)
        types[0, window.split :] = 1
        ids = np.asarray([window.ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        scores: list[list[float]] = self.session.run(None, inputs)[0][0].tolist()
        return scores


def load(folder: Path = MODEL_FOLDER, network: str = NETWORK) -> Model:
    """Load the network, its tokenizer and its calibration. Without a calibration file, use the default.

    Args:
        folder: Folder with the network, `tokenizer.json` and `calibration.json`.
        network: File name of the network.

    Raises:
        ServiceError: A package or file is missing, or a file cannot be used.
    """
    if not (folder / network).exists():
        raise ServiceError(f"no model in {folder}: reinstall pyrag-runtime, or train one with `make reader`")
    try:
        session = open_network(folder / network, threads=1)
        if len(session.get_outputs()[0].shape) != len(("batch", "token", "start and end")):
            raise ValueError(f"{network} is another network")
        tokenizer = open_tokenizer(folder / "tokenizer.json")
        calibration = _calibration(folder / "calibration.json")
    except ImportError as error:
        raise ServiceError(f"the embedded reader needs {error.name}: {install_extra('embedded')}") from error
    except Exception as error:  # errors of onnxruntime derive directly from Exception
        reason = str(error).partition("\n")[0][:200]
        raise ServiceError(
            f"the reader in {folder} cannot be used ({reason}): make it again with make reader or pyrag train"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Model(tokenizer, session, calibration)


def _calibration(path: Path) -> Calibration:
    """Read a calibration. Without a file, return the default.

    Raises:
        ValueError: The file holds no usable calibration.
    """
    import msgspec

    if not path.exists():
        return Calibration()
    calibration = msgspec.json.decode(path.read_bytes(), type=Calibration)
    if not calibration.scale or not 0 < calibration.threshold < 1:
        raise ValueError(f"{path.name} has a scale of 0, or a threshold that is not between 0 and 1")
    return calibration
