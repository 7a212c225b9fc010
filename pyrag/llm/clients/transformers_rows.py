"""The rows of a batch that transformers generates: how each is sampled, when it ends, what its caller hears.

`generate` knows one setting for all rows. So it is asked for greedy decoding, and a `RowSampler` adds to the logits of
rows with a temperature the noise that makes the largest one a sample (Gumbel), from a generator of the row's own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pyrag.llm.clients.adapters import Adapter
from pyrag.llm.protocol import Reply, Sampling

_HALF_A_CHARACTER = "\ufffd"  # a decoder's sign for bytes whose rest is still to come


@dataclass(eq=False, slots=True)
class BatchRow:
    """One prompt and what has been written after it; `said` characters of it went to the caller."""

    prompt: list[int]
    sampling: Sampling
    adapter: Adapter | None
    say: Callable[[str], None] | None
    future: Future[Reply] = field(default_factory=Future)
    seed: int = 0
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    said: int = 0
    finish: str = ""

    def __post_init__(self) -> None:
        self.seed = secrets.randbits(63) if self.sampling.seed is None else self.sampling.seed

    def begin(self) -> None:
        """Also after a failed attempt, which wrote the same as the next one will."""
        self.tokens, self.text, self.finish = [], "", ""

    def reply(self) -> Reply:
        return Reply(self.text, len(self.prompt), len(self.tokens), self.finish)


class RowSampler:
    """A logits processor of transformers: after it, the largest logit is the row's next token."""

    def __init__(self, rows: Sequence[BatchRow], defaults: Any, device: Any) -> None:
        import torch

        self._rows = rows
        self._cuts = _cuts(defaults)
        self._generators = {
            number: torch.Generator(device).manual_seed(row.seed)
            for number, row in enumerate(rows)
            if row.sampling.temperature > 0
        }

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        for number, generator in self._generators.items():
            logits = scores[number : number + 1].float() / self._rows[number].sampling.temperature
            for cut in self._cuts:
                logits = cut(input_ids[number : number + 1], logits)
            noise = torch.empty_like(logits).exponential_(generator=generator).log_()
            scores[number] = (logits - noise)[0].to(scores.dtype)
        return scores


class Ending:
    """A stopping criterion of transformers: which rows are done. It also keeps each row's text and tells it."""

    def __init__(self, rows: Sequence[BatchRow], tokenizer: Any, end_tokens: Sequence[int]) -> None:
        self._rows = rows
        self._tokenizer = tokenizer
        self._ends = frozenset(end_tokens)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        import torch

        for row, token in zip(self._rows, input_ids[:, -1].tolist(), strict=True):
            if not row.finish:
                self._add(row, token)
        return torch.tensor([bool(row.finish) for row in self._rows], device=input_ids.device)

    def _add(self, row: BatchRow, token: int) -> None:
        row.tokens.append(token)
        if token in self._ends:
            row.finish = "stop"
        elif len(row.tokens) >= row.sampling.max_tokens:
            row.finish = "length"
        elif row.future.cancelled():
            row.finish = "cancelled"
        if row.finish or row.say or row.sampling.stop:
            self._read(row)

    def _read(self, row: BatchRow) -> None:
        row.text = str(self._tokenizer.decode(row.tokens, skip_special_tokens=True))
        found = [place for stop in row.sampling.stop if (place := row.text.find(stop)) >= 0]
        if found:
            row.text, row.finish = row.text[: min(found)], "stop"
        if row.say:
            self._tell(row)

    def _tell(self, row: BatchRow) -> None:
        # What may be the beginning of a stop string, or half a character, is told once it is known not to be.
        text = row.text
        if not row.finish:
            text = text.rstrip(_HALF_A_CHARACTER)
            text = text[: len(text) - max((len(stop) - 1 for stop in row.sampling.stop), default=0)]
        if row.say and len(text) > row.said:
            row.say(text[row.said :])
            row.said = len(text)


def _cuts(defaults: Any) -> list[Any]:
    """Return the truncations (top-k, top-p) that the model's authors set."""
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    cuts: list[Any] = [TopKLogitsWarper(defaults.top_k)] if defaults.top_k else []
    if defaults.top_p and defaults.top_p < 1:
        cuts.append(TopPLogitsWarper(defaults.top_p))
    return cuts
