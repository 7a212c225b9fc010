"""Packs of rows without padding, and attention over them: rows apart, or those of one prompt as a tree.

GRPO draws many replies to a prompt. What the model computes of the prompt is the same for all of them, so a pack holds
the prompt once, and each reply attends to it and to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

PACKED_ATTENTION = "packed_sdpa"  # its name in transformers


def pack_places(offsets: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the places that lay a pack of rows out as a padded batch, and back.

    Args:
        offsets: Start of each row in the pack and the end of the last, shape (rows + 1,).

    Returns:
        `spread`, the token of the pack at each place of the batch, shape (rows, longest), and `gathered`, the place in
        the flattened batch of each token of the pack, shape (tokens,).
    """
    lengths = offsets.diff()
    steps = torch.arange(int(lengths.max()), device=offsets.device)
    spread = (offsets[:-1, None] + steps).clamp(max=int(offsets[-1]) - 1)  # what stands after a row is not looked at
    return {"spread": spread, "gathered": (steps < lengths[:, None]).flatten().nonzero()[:, 0]}


@dataclass(frozen=True, slots=True)
class SharedPack:
    """A pack in which each prompt stands once, followed by its replies.

    Attributes:
        kept: Place in the pack of rows of each token here, shape (tokens,).
        places: Place here of each token of the pack of rows, shape (tokens of all rows,).
        attention: Arguments of `packed_attention`; a "row" is a prompt with its replies.
    """

    kept: torch.Tensor
    places: torch.Tensor
    attention: dict[str, torch.Tensor]


def share_prompts(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> SharedPack:
    """Lay rows out with equal prompts once.

    Args:
        rows: The tokens of each row, prompt and reply.
        replies: The length of each row's reply.
    """
    starts = torch.tensor([0, *map(len, rows)]).cumsum(0).tolist()
    kept: list[int] = []
    places: list[list[int]] = [[] for _ in rows]
    parts, ends = [], [0]  # parts: 0 for a prompt's tokens, 1 and up for those of its replies
    for prompt, members in _by_prompt(rows, replies).items():
        first, part = len(kept), [0] * len(prompt)
        kept += range(starts[members[0]], starts[members[0]] + len(prompt))
        for which, number in enumerate(members, start=1):
            places[number] = [*range(first, first + len(prompt)), *range(len(kept), len(kept) + replies[number])]
            kept += range(starts[number] + len(prompt), starts[number + 1])
            part += [which] * replies[number]
        parts.append(torch.tensor(part))
        ends.append(len(kept))
    device = rows[0].device
    attention = pack_places(torch.tensor(ends, device=device)) | {"seen": _seen(parts).to(device)}
    flat = [one for row in places for one in row]
    return SharedPack(torch.tensor(kept, device=device), torch.tensor(flat, device=device), attention)


def prompts_together(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> list[int]:
    """Return the order of rows, their numbers, in which those of one prompt follow each other.

    Args:
        rows: The tokens of each row, prompt and reply.
        replies: The length of each row's reply.
    """
    return [number for members in _by_prompt(rows, replies).values() for number in members]


def _by_prompt(rows: Sequence[torch.Tensor], replies: Sequence[int]) -> dict[tuple[int, ...], list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, (row, reply) in enumerate(zip(rows, replies, strict=True)):
        groups.setdefault(tuple(row[: len(row) - reply].tolist()), []).append(number)
    return groups


def _seen(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return which tokens each token of a prompt with its replies sees, shape (prompts, 1, longest, longest)."""
    padded = torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)  # padding sees a prompt: no row is empty
    query, key = padded[:, :, None], padded[:, None, :]
    return ((key == 0) | (key == query)).tril()[:, None]


def packed_attention(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: object, *,
    spread: torch.Tensor, gathered: torch.Tensor, seen: torch.Tensor | None = None, dropout: float = 0.0,
    scaling: float | None = None, **_: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    """Causal attention within each row of a pack.

    Args:
        module: The attention layer.
        query: Shape (1, heads, tokens, width), as `key` and `value`, whose heads may be fewer.
        key: The keys.
        value: The values.
        attention_mask: Ignored: transformers makes none for an attention of this kind.
        spread: Of `pack_places`, as `gathered`.
        gathered: Place of each token in the batch.
        seen: The tokens that each token attends to, shape (rows, 1, longest, longest); all earlier ones if None.
        dropout: Probability of dropout.
        scaling: Factor of the products.

    Returns:
        Shape (1, tokens, heads, width), and None for the weights.
    """
    apart = (one[0][:, spread].transpose(0, 1) for one in (query, key, value))
    found, _none = sdpa_attention_forward(module, *apart, seen, dropout=dropout, scaling=scaling, is_causal=True)
    return found.flatten(0, 1)[gathered][None], None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
