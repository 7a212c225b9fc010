"""Conversations as verl's supervised trainer reads them: none too long, in an order drawn by the run's seed.

verl can only cut a conversation that is too long, which takes its reply away, or end the run. So what exceeds the
limit is left out before verl sees it, counted by the model's own tokenizer and chat template. Left out: where
conversations come from (`pyrag_rl.data`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from pyrag.evaluation.metrics import normalise
from pyrag_rl.data.rows import Conversation, read_conversations
from pyrag_rl.verl.lengths import Length


@dataclass(frozen=True, slots=True)
class FittedRows:
    """The conversations of a set that are within `limit` tokens; `left_out` are longer. `tokens` is their sum."""

    kept: Sequence[Conversation]
    left_out: int
    limit: int
    tokens: int

    def told(self, data: str) -> str:
        """Return the sentence that says how many rows remain, and how many were left out.

        Args:
            data: the set that they come from, as the user named it.
        """
        count = len(self.kept)
        mean = f"{data}: {count} rows of {self.tokens / count:.0f} tokens on average"
        if not self.left_out:
            return f"{mean}, all within {self.limit} tokens"
        return (
            f"{mean}; {self.left_out} of {count + self.left_out} rows are left out, since prompt and reply "
            f"exceed prompt_tokens + response_tokens = {self.limit} tokens"
        )


def fit_rows(data: str, length: Length, limit: int, seed: int | None = None) -> FittedRows:
    """Return the conversations of a set that are short enough.

    Args:
        data: the supervised set.
        length: counts tokens.
        limit: the most tokens of a conversation, reply included.
        seed: of their order; None keeps the set's own.

    Raises:
        DataError: the set cannot be read, or every conversation is too long.
    """
    found = read_conversations(Path(data))
    lengths = [length(one.messages) for one in found]
    order = [place for place, tokens in enumerate(lengths) if tokens <= limit]
    if not order:
        raise DataError(
            f"all {len(found)} rows of {data} exceed prompt_tokens + response_tokens = {limit} tokens (the shortest "
            f"has {min(lengths, default=0)}): set them higher"
        )
    if seed is not None:
        random.Random(seed).shuffle(order)  # noqa: S311  an order, no secret
    tokens = sum(lengths[place] for place in order)
    return FittedRows([found[place] for place in order], len(found) - len(order), limit, tokens)


def check_sets(data: str, eval_data: str | None) -> None:
    """Check that the sets can be read, and that no question is both learnt from and evaluated on.

    Args:
        data: the training set.
        eval_data: the evaluation's, if there is one.

    Raises:
        DataError: a set cannot be read, or a question is in both.
    """
    learnt, held = ({_words(one) for one in _read(path)} for path in (data, eval_data))
    if shared := learnt & held:
        raise DataError(
            f"{len(shared)} questions are in both {data} and {eval_data}, such as {min(shared)[:80]!r}: train and "
            "evaluate on different ones"
        )


def _read(path: str | None) -> Sequence[Conversation]:
    return read_conversations(Path(path)) if path else ()


def _words(one: Conversation) -> str:
    """The question by which conversations are compared; the whole prompt where the set does not name it."""
    return normalise(one.question or "\n".join(said["content"] for said in one.messages if said["role"] != "assistant"))
