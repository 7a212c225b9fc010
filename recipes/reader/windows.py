"""A question and a passage as labelled tokens: cutting windows, finding the answer, aligning it to tokens. No torch.

The form of an input is `pyrag.embedded.reader.neural.windows`. A label is the first and last token of the answer, both
0 (the `[CLS]`) where the window does not hold one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyrag.embedded.reader.neural.windows import Encoded, Offsets, Tokenizer, assemble, sentence_starts, title_text
from recipes.reader.layout import Text

ANSWER_TOKENS = 30


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids, where the passage part begins, and the answer's first and last token (0, 0: no answer)."""

    ids: list[int]
    split: int
    start: int
    end: int


def occurrence(text: str, answer: str, question: str) -> tuple[int, int] | None:
    """Find an answer in a text: whole words first, then where the surroundings share most with the question.

    Args:
        text: The passage's text.
        answer: Looked for in its own letter case first, then in any.
        question: Its words are looked for 120 characters to either side.

    Returns:
        First character and the one after the last; None where the text lacks the answer.
    """
    found = [match.start() for match in re.finditer(re.escape(answer), text)]
    if not found:
        found = [match.start() for match in re.finditer(re.escape(answer), text, re.IGNORECASE)]
    if not found:
        return None
    wanted = terms(question)

    def merit(at: int) -> tuple[bool, int]:
        end = at + len(answer)
        whole = not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        return whole, len(wanted & terms(text[max(0, at - 120) : end + 120]))

    best = max(found, key=merit)
    return best, best + len(answer)


def terms(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


def token_span(offsets: Offsets, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last token that overlap some characters; None if no token does.

    Args:
        offsets: First character of each token and the one after its last.
        start: First character.
        end: The character after the last.
    """
    inside = [index for index, (left, right) in enumerate(offsets) if right > start and left < end]
    return (inside[0], inside[-1]) if inside else None


def cut(
    count: int, budget: int, starts: Iterable[int], keep: tuple[int, int] | None, rng: random.Random
) -> tuple[int, int]:
    """Choose a window of tokens, mostly from a sentence's start.

    Args:
        count: Tokens of the passage.
        budget: Tokens of the window, at most.
        starts: Tokens that begin sentences.
        keep: First and last token that the window must hold, `budget` tokens at most; None for a window anywhere.
        rng: Draws the window.

    Returns:
        First token of the window and the one after its last.
    """
    if count <= budget:
        return 0, count
    if keep is None:
        fitting = [start for start in starts if start < count - budget // 2]
        start = rng.choice(fitting or [0])
    else:
        first, last = max(0, keep[1] - budget + 1), min(keep[0], count - 1)
        fitting = [start for start in starts if first <= start <= last]
        start = rng.choice(fitting) if fitting and rng.random() < 0.85 else rng.randint(first, last)
    return start, min(count, start + budget)


class ExampleEncoder:
    """Makes examples with one tokenizer; a passage is tokenised once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._seen: dict[str, Encoded] = {}

    def _encoded(self, text: Text) -> Encoded:
        if text.id not in self._seen:
            self._seen[text.id] = self._tokenizer.encode(text.text, add_special_tokens=False)
        return self._seen[text.id]

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def example(
        self, question: str, text: Text, span: tuple[int, int] | None, *, budget: int, titled: bool, rng: random.Random
    ) -> Example | None:
        """Make an example of one window.

        Args:
            question: The question in words.
            text: The passage to cut the window from.
            span: First character of the answer and the one after its last; None for "no answer".
            budget: Tokens of the window at most, without question and title; more where the answer needs them.
            titled: Put the passage's title before the window.
            rng: Draws the window.

        Returns:
            The example; None where no token holds the answer or it is longer than `ANSWER_TOKENS`.
        """
        encoded = self._encoded(text)
        tokens, offsets = encoded.ids, encoded.offsets
        keep = None
        if span is not None:
            keep = token_span(offsets, *span)
            if keep is None or keep[1] - keep[0] >= ANSWER_TOKENS:
                return None
            budget = max(budget, keep[1] - keep[0] + 8)
        starts = sentence_starts(text.text, offsets) if len(tokens) > budget else []
        low, high = cut(len(tokens), budget, starts, keep, rng)
        head = self._tokens(title_text(text.title)) if titled else []
        ids, split, first = assemble(self._tokens(question), head, tokens[low:high])
        if keep is None:
            return Example(ids, split, 0, 0)
        return Example(ids, split, keep[0] - low + first, keep[1] - low + first)
