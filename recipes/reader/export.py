"""Export of weights to ONNX: as float32, then as int8 with one scale per output channel."""

# torch and onnxruntime are needed for training only, so type checks run without them:
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from pyrag.networks.onnx import forbid_telemetry
from recipes.reader.model import MINILM, Embedder, Encoder, Reader, Shape

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def reader(weights: Path, folder: Path, shape: Shape = MINILM) -> Path:
    """Write `reader.fp32.onnx` and `reader.int8.onnx` into a folder.

    Args:
        weights: File with the state of a `Reader`, in float32.
        folder: Existing folder. Files of these names are replaced.
        shape: Sizes of the network.

    Returns:
        Path of the int8 network.
    """
    model = Reader(shape)
    model.load_state_dict(torch.load(weights))
    return _export(model.eval(), folder / "reader", "scores", {0: "batch", 1: "length"})


def embedder(encoder: Encoder, folder: Path) -> Path:
    """Write `embedder.fp32.onnx` and `embedder.int8.onnx`, which embed texts for dense retrieval.

    Args:
        encoder: Encoder before the reader's training.
        folder: Existing folder. Files of these names are replaced.

    Returns:
        Path of the int8 network.
    """
    return _export(Embedder(encoder).eval(), folder / "embedder", "embedding", {0: "batch"})


def _export(model: Any, base: Path, output: str, axes: dict[int, str]) -> Path:
    """Write a model as float32 and as int8, and return the path of the int8 network.

    Args:
        model: Network in evaluation mode.
        base: Path of the files without ".fp32.onnx" and ".int8.onnx".
        output: Name of the network's output.
        axes: Axes of the output whose length varies, with their names.
    """
    forbid_telemetry()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole, small = base.with_suffix(".fp32.onnx"), base.with_suffix(".int8.onnx")
    ids = torch.randint(1000, 2000, (2, 16))
    example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    dynamic = {name: {0: "batch", 1: "length"} for name in _INPUTS} | {output: axes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            example,
            str(whole),
            input_names=list(_INPUTS),
            output_names=[output],
            dynamic_axes=dynamic,
            opset_version=17,
            dynamo=False,
        )
    fresh = base.with_suffix(".tmp.onnx")
    quantize_dynamic(str(whole), str(fresh), weight_type=QuantType.QInt8, per_channel=True)
    return fresh.replace(small)  # only when it is complete, since a resumed run skips an existing file
