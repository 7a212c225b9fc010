"""The network as it ships: int8 ONNX run by onnxruntime on one thread, one passage window at a time.

One at a time because int8 activations are scaled over the whole input: a batch would make a passage's scores depend on
its neighbours, and gains no speed on a CPU. `onnxruntime` is imported when the model is first used.
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
    """From margins to probabilities, fitted on held-out training questions; see the model card."""

    scale: float = 1.0
    offset: float = 0.0
    about: float = 0.0  # what a passage about the question's subject adds to a margin
    agrees: float = 0.0  # what the lexical reader's agreement adds
    threshold: float = 0.5  # least confidence of a known answer

    @property
    def least_score(self) -> float:
        """The score from which on an answer counts as known."""
        return (math.log(self.threshold / (1 - self.threshold)) - self.offset) / self.scale


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded network; safe to use from several threads at once."""

    tokenizer: Tokenizer
    session: Any
    calibration: Calibration

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the best spans of every passage, best first.

        Args:
            question: The question; tokens beyond `QUESTION_TOKENS` are cut off.
            texts: Title and text of each passage; long texts are read in several windows.
            count: Most spans of one window.
        """
        made = windows(self.tokenizer, question, texts)
        found = [span for window in made for span in best_spans(window, self._scores(window), count)]
        return sorted(found, key=lambda span: (-span.margin, span.passage, span.start))

    def _scores(self, window: Window) -> list[list[float]]:
        import numpy as np

        count = len(window.ids)
        types = np.zeros((1, count), dtype=np.int64)
        types[0, window.split :] = 1
        ids = np.asarray([window.ids], dtype=np.int64)
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        scores: list[list[float]] = self.session.run(None, fed)[0][0].tolist()
        return scores


def load(folder: Path = MODEL_FOLDER, network: str = NETWORK) -> Model:
    """Load the network, its tokenizer and its calibration; without a calibration file the margins stay as they are.

    Args:
        folder: Folder of the network, `tokenizer.json` and `calibration.json`.
        network: Name of the network's file in the folder.

    Raises:
        ServiceError: packages or files are missing, or are not what they should be.
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
    except Exception as error:  # those of onnxruntime derive from Exception alone
        reason = str(error).partition("\n")[0][:200]
        raise ServiceError(
            f"the reader in {folder} cannot be used ({reason}): make it again with make reader or pyrag train"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Model(tokenizer, session, calibration)


def _calibration(path: Path) -> Calibration:
    """Read a calibration, or return the default where there is no file; raises `ValueError` for an unusable one."""
    import msgspec

    if not path.exists():
        return Calibration()
    found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    if not found.scale or not 0 < found.threshold < 1:
        raise ValueError(f"{path.name} has a scale of 0, or a threshold that is none")
    return found
