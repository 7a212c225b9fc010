"""Shipped reader as torch weights, computed from its int8 network and the network's scales.

The package does not ship the float32 weights, so training starts from the network that is shipped to users.
"""

# torch and onnx are needed for training only, so type checks run without them:
# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyrag.errors import DataError
from recipes.reader.model import Reader, Shape, shape_of

_PARTS = ("qkv", "out", "up", "down")  # of a layer, in the order in which the network multiplies


def weights_of_onnx(path: Path, shape: Shape) -> dict[str, Tensor]:
    """Return the float32 state of a `Reader` from an int8 network.

    Args:
        path: Network that `export.reader` wrote.
        shape: Sizes of the network.

    Raises:
        DataError: The file holds another kind of network.
    """
    import onnx

    graph = onnx.load(str(path)).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    matrices = [_dequantised(stored, node.input[1]).T for node in graph.node if node.op_type == "MatMulInteger"]
    names = [f"encoder.layers.{layer}.{part}.weight" for layer in range(shape.layers) for part in _PARTS]
    state: dict[str, Any] = dict(zip([*names, "head.weight"], matrices, strict=False))
    for name in Reader(shape).state_dict():
        if name in stored:
            state[name] = stored[name]
        elif f"{name}_quantized" in stored:
            state[name] = _dequantised(stored, f"{name}_quantized")
    model = Reader(shape)
    try:
        model.load_state_dict({name: torch.tensor(np.ascontiguousarray(array)) for name, array in state.items()})
    except RuntimeError as error:
        raise DataError(_no_reader(path, error)) from error
    return dict(model.state_dict())


def weights_of_file(path: Path) -> dict[str, Tensor]:
    """Return the state of a `Reader` from a .pt file of `make reader`. No code in the file is run.

    Raises:
        DataError: The file cannot be read or holds another kind of network.
    """
    try:
        state: dict[str, Tensor] = torch.load(path, weights_only=True)
        Reader(shape_of(state)).load_state_dict(state)
    except OSError as error:
        raise DataError(f"cannot read the weights {path}: {error.strerror}") from error
    except (UnpicklingError, EOFError, RuntimeError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise DataError(_no_reader(path, error)) from error
    return state


def _no_reader(path: Path, error: Exception) -> str:
    """Return the message for a file that does not contain a reader."""
    reason = " ".join(str(error).split())[:200]
    return f"{path} is not a reader that can be trained on ({reason}): make one with make reader"


def _dequantised(stored: dict[str, Any], name: str) -> Any:
    """Convert an int8 tensor to float32, using its scale and zero point, which may differ per column."""
    base = name.removesuffix("_quantized")
    scale, zero = stored[f"{base}_scale"], stored[f"{base}_zero_point"]
    return (stored[name].astype(np.float32) - zero.astype(np.float32)) * scale
