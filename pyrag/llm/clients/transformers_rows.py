"""Rows of a batch that transformers generates: their sampling, their ends and their streamed text.

`generate` has one setting for all rows. It therefore decodes greedily, and a `RowSampler` adds Gumbel noise from a
row's own generator to the logits of rows with a temperature, so that the largest logit is a sample.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pyrag.llm.clients.adapters import Adapter
from pyrag.llm.protocol import Reply, Sampling

_HALF_A_CHARACTER = "\ufffd"  # a decoder's mark for an incomplete character


@dataclass(eq=False, slots=True)
class BatchRow:
    """Prompt and the text generated after it. `shown` is the number of characters already sent to the caller."""

    prompt: list[int]
    sampling: Sampling
    adapter: Adapter | None
    say: Callable[[str], None] | None
    future: Future[Reply] = field(default_factory=Future)
    seed: int = 0
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    shown: int = 0
    finish: str = ""

    def __post_init__(self) -> None:
        self.seed = secrets.randbits(63) if self.sampling.seed is None else self.sampling.seed

    def begin(self) -> None:
        """Start generating. This may follow a failed attempt, whose text is generated again."""
        self.tokens, self.text, self.finish = [], "", ""

    def reply(self) -> Reply:
        """Return the finished reply."""
        return Reply(self.text, len(self.prompt), len(self.tokens), self.finish)


class RowSampler:
    """Logits processor of transformers that makes the row's next token the largest logit."""

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
    """Stopping criterion of transformers that also decodes each row's text and streams it."""

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
        places = [place for stop in row.sampling.stop if (place := row.text.find(stop)) >= 0]
        if places:
            row.text, row.finish = row.text[: min(places)], "stop"
        if row.say:
            self._tell(row)

    def _tell(self, row: BatchRow) -> None:
        # Text that may begin a stop string, or half a character, is held back until it is complete.
        text = row.text
        if not row.finish:
            text = text.rstrip(_HALF_A_CHARACTER)
            text = text[: len(text) - max((len(stop) - 1 for stop in row.sampling.stop), default=0)]
        if row.say and len(text) > row.shown:
            row.say(text[row.shown :])
            row.shown = len(text)


def _cuts(defaults: Any) -> list[Any]:
    """Return the truncations (top-k, top-p) that the model's authors set."""
    from transformers import TopKLogitsWarper, TopPLogitsWarper

    cuts: list[Any] = [TopKLogitsWarper(defaults.top_k)] if defaults.top_k else []
    if defaults.top_p and defaults.top_p < 1:
        cuts.append(TopPLogitsWarper(defaults.top_p))
    return cuts
