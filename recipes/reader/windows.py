"""Question and passage as labelled tokens: cuts windows, finds the answer and aligns it to tokens, without torch.

`pyrag.embedded.reader.neural.windows` defines the form of an input. A label is the first and last token of the answer,
or 0 and 0 (`[CLS]`) if the window does not contain it.
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
    """Labelled tokens of a question and a window.

    Args:
        ids: Token ids.
        split: Position of the first token after the question.
        start: Position of the answer's first token. Zero for "no answer".
        end: Position of the answer's last token. Zero for "no answer".
    """

    ids: list[int]
    split: int
    start: int
    end: int


def occurrence(text: str, answer: str, question: str) -> tuple[int, int] | None:
    """Return the occurrence of an answer in a text that most likely answers the question.

    Occurrences as whole words come first, then those whose surroundings share more words with the question.

    Args:
        text: Text of the passage.
        answer: The answer. Its case is ignored only if the text does not contain it as written.
        question: Question whose words are counted within 120 characters of the answer.

    Returns:
        Position of the first character and position after the last; None if the text lacks the answer.
    """
    starts = [match.start() for match in re.finditer(re.escape(answer), text)]
    if not starts:
        starts = [match.start() for match in re.finditer(re.escape(answer), text, re.IGNORECASE)]
    if not starts:
        return None
    question_terms = terms(question)

    def merit(at: int) -> tuple[bool, int]:
        end = at + len(answer)
        whole = not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        return whole, len(question_terms & terms(text[max(0, at - 120) : end + 120]))

    best = max(starts, key=merit)
    return best, best + len(answer)


def terms(text: str) -> set[str]:
    """Return the words of a text that have at least three letters, in lower case."""
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


def token_span(offsets: Offsets, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last token that overlap a range of characters; None if no token does.

    Args:
        offsets: For each token the position of its first character and the position after its last.
        start: Position of the first character.
        end: Position after the last character.
    """
    inside = [index for index, (left, right) in enumerate(offsets) if right > start and left < end]
    return (inside[0], inside[-1]) if inside else None


def cut(
    count: int, budget: int, starts: Iterable[int], keep: tuple[int, int] | None, rng: random.Random
) -> tuple[int, int]:
    """Return a window of tokens, which usually begins at the start of a sentence.

    Args:
        count: Number of the passage's tokens.
        budget: Maximum number of tokens in the window.
        starts: Positions of tokens that begin sentences.
        keep: First and last token that the window must contain, at most `budget` tokens apart. None for a window
            anywhere.
        rng: Random generator for the choice of the window.

    Returns:
        Position of the window's first token and position after its last.
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
    """Maker of examples that tokenises each passage only once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._seen: dict[str, Encoded] = {}

    def _encoded(self, text: Text) -> Encoded:
        """Return a passage's tokens."""
        if text.id not in self._seen:
            self._seen[text.id] = self._tokenizer.encode(text.text, add_special_tokens=False)
        return self._seen[text.id]

    def _tokens(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def example(
        self, question: str, text: Text, span: tuple[int, int] | None, *, budget: int, titled: bool, rng: random.Random
    ) -> Example | None:
        """Return the example for a window.

        Args:
            question: The question.
            text: Passage to cut the window from.
            span: Position of the answer's first character and position after its last. None for "no answer".
            budget: Maximum number of tokens without question and title. The window grows if the answer needs more.
            titled: Whether to put the passage's title before the window.
            rng: Random generator for the choice of the window.

        Returns:
            The example; None if no token holds the answer or the answer is longer than `ANSWER_TOKENS`.
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
