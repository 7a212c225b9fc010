"""Packs of rows without padding, with attention that keeps rows apart, or shares the prompt between its replies.

GRPO samples many replies to a prompt, and the model's computation for the prompt is the same for each. A pack therefore
contains the prompt once, and each reply attends to the prompt and to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

PACKED_ATTENTION = "packed_sdpa"  # name of the attention in transformers


def pack_places(offsets: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the positions that convert a pack of rows to a padded batch, and back.

    Args:
        offsets: Start of each row in the pack, and the end of the last row, shape (rows + 1,).

    Returns:
        `spread`, the token of the pack at each place of the batch, shape (rows, longest), and `gathered`, the place of
        each token of the pack in the flattened batch, shape (tokens,).
    """
    lengths = offsets.diff()
    steps = torch.arange(int(lengths.max()), device=offsets.device)
    spread = (offsets[:-1, None] + steps).clamp(max=int(offsets[-1]) - 1)  # places after a row are never used
    return {"spread": spread, "gathered": (steps < lengths[:, None]).flatten().nonzero()[:, 0]}


@dataclass(frozen=True, slots=True)
class SharedPack:
    """Pack in which each prompt occurs once, followed by its replies.

    Attributes:
        sources: For each token of this pack, its position in the pack of rows, shape (tokens,).
        places: For each token of the pack of rows, its position in this pack, shape (tokens of all rows,).
        attention: Arguments of `packed_attention`, where a "row" is a prompt with its replies.
    """

    sources: torch.Tensor
    places: torch.Tensor
    attention: dict[str, torch.Tensor]


def share_prompts(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> SharedPack:
    """Return a pack of rows in which equal prompts occur only once.

    Args:
        rows: Tokens of each row, prompt and reply.
        replies: Length of each row's reply.
    """
    starts = torch.tensor([0, *map(len, rows)]).cumsum(0).tolist()
    sources: list[int] = []
    places: list[list[int]] = [[] for _ in rows]
    parts, ends = [], [0]  # parts: 0 for tokens of a prompt, and the number of the reply for its tokens
    for prompt, members in _by_prompt(rows, replies).items():
        first, part = len(sources), [0] * len(prompt)
        sources += range(starts[members[0]], starts[members[0]] + len(prompt))
        for which, number in enumerate(members, start=1):
            places[number] = [*range(first, first + len(prompt)), *range(len(sources), len(sources) + replies[number])]
            sources += range(starts[number] + len(prompt), starts[number + 1])
            part += [which] * replies[number]
        parts.append(torch.tensor(part))
        ends.append(len(sources))
    device = rows[0].device
    attention = pack_places(torch.tensor(ends, device=device)) | {"seen": _seen(parts).to(device)}
    flat = [place for row in places for place in row]
    return SharedPack(torch.tensor(sources, device=device), torch.tensor(flat, device=device), attention)


def prompts_together(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> list[int]:
    """Return row numbers in an order that puts rows with the same prompt next to each other.

    Args:
        rows: Tokens of each row, prompt and reply.
        replies: Length of each row's reply.
    """
    return [number for members in _by_prompt(rows, replies).values() for number in members]


def _by_prompt(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> dict[tuple[int, ...], list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, (row, reply) in enumerate(zip(rows, replies, strict=True)):
        groups.setdefault(tuple(row[: len(row) - reply].tolist()), []).append(number)
    return groups


def _seen(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return which tokens each token of a prompt and its replies attends to: shape (prompts, 1, longest, longest)."""
    padded = torch.nn.utils.rnn.pad_sequence(
        list(parts), batch_first=True
    )  # padding sees the prompt, so no row is empty
    query, key = padded[:, :, None], padded[:, None, :]
    return ((key == 0) | (key == query)).tril()[:, None]


def packed_attention(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: object, *,
    spread: torch.Tensor, gathered: torch.Tensor, seen: torch.Tensor | None = None, dropout: float = 0.0,
    scaling: float | None = None, **_: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    """Return causal attention within each row of a pack.

    Args:
        module: The attention layer.
        query: Queries, shape (1, heads, tokens, width).
        key: Keys, of the same shape except that there may be fewer heads.
        value: Values, in the same shape as the keys.
        attention_mask: Ignored, because transformers creates no mask for this kind of attention.
        spread: Result of `pack_places`.
        gathered: Result of `pack_places`: place of each token in the batch.
        seen: Tokens that each token attends to, shape (rows, 1, longest, longest); None for all earlier tokens.
        dropout: Probability of dropout.
        scaling: Factor of the products.

    Returns:
        Attention of shape (1, tokens, heads, width), and None for the weights.
    """
    apart = (tensor[0][:, spread].transpose(0, 1) for tensor in (query, key, value))
    outputs, _none = sdpa_attention_forward(module, *apart, seen, dropout=dropout, scaling=scaling, is_causal=True)
    return outputs.flatten(0, 1)[gathered][None], None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
