"""Conversations for verl's supervised trainer: those that are not too long, in an order drawn with the run's seed.

verl could only truncate a conversation that is too long, which removes its reply, or end the run. Such conversations
are therefore dropped before verl reads them, based on the model's own tokenizer and chat template. `pyrag_rl.data`
makes the conversations.
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
    """Conversations with at most `limit` tokens. `left_out` is the number of longer ones, and `tokens` is the sum."""

    rows: Sequence[Conversation]
    left_out: int
    limit: int
    tokens: int

    def summary(self, data: str) -> str:
        """Return a sentence about the numbers of rows and of dropped rows.

        Args:
            data: The set, as the user named it.
        """
        count = len(self.rows)
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
        data: The supervised set.
        length: Function that counts tokens.
        limit: Maximum number of tokens of a conversation, including the reply.
        seed: Seed for their order; None to keep the set's order.

    Raises:
        DataError: The set cannot be read, or every conversation is too long.
    """
    conversations = read_conversations(Path(data))
    lengths = [length(conversation.messages) for conversation in conversations]
    order = [place for place, tokens in enumerate(lengths) if tokens <= limit]
    if not order:
        raise DataError(
            f"all {len(conversations)} rows of {data} exceed prompt_tokens + response_tokens = {limit} tokens (the "
            f"shortest has {min(lengths, default=0)}): set them higher"
        )
    if seed is not None:
        random.Random(seed).shuffle(order)  # noqa: S311  an order, no secret
    tokens = sum(lengths[place] for place in order)
    return FittedRows([conversations[place] for place in order], len(conversations) - len(order), limit, tokens)


def check_sets(data: str, eval_data: str | None) -> None:
    """Check that the sets can be read, and that no question is both learnt from and evaluated on.

    Args:
        data: The training set.
        eval_data: The evaluation set, if there is one.

    Raises:
        DataError: A set cannot be read, or a question is in both.
    """
    learnt, held = ({_words(conversation) for conversation in _read(path)} for path in (data, eval_data))
    if shared := learnt & held:
        raise DataError(
            f"{len(shared)} questions are in both {data} and {eval_data}, such as {min(shared)[:80]!r}: train and "
            "evaluate on different ones"
        )


def _read(path: str | None) -> Sequence[Conversation]:
    return read_conversations(Path(path)) if path else ()


def _words(conversation: Conversation) -> str:
    """Return the text used to compare conversations: the question, or the whole prompt if the question is unknown."""
    return normalise(
        conversation.question
        or "\n".join(message["content"] for message in conversation.messages if message["role"] != "assistant")
    )
