"""Input of the neural reader: `[CLS] question [SEP] title. window [SEP]`, with windows that start at sentences.

Training uses the same code. Any tokenizer with the interface of `pyrag.networks.wordpiece.WordPiece` will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

CLS, SEP = 101, 102
QUESTION_TOKENS = 48
TITLE_TOKENS = 16
WINDOW_TOKENS = 200
_OVERLAP = 48  # minimum tokens that neighbouring windows share, so that no answer is cut in two

Offsets = Sequence[tuple[int, int]]


class Encoded(Protocol):
    """Tokenised text: the ids of its tokens, and the characters that each token covers."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...


class Tokenizer(Protocol):
    """Interface of a tokenizer."""

    def encode(self, sequence: str, *, add_special_tokens: bool) -> Encoded:
        """Split a text into tokens.

        Args:
            sequence: Text.
            add_special_tokens: Whether to add `[CLS]` and `[SEP]`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """Input of the network for a part of a passage.

    Args:
        passage: Index of the passage.
        ids: Token ids.
        split: Index of the first token of the second segment.
        first: Index of the first token of the passage's text.
        offsets: Range of characters in the text that each of these tokens covers.
    """

    passage: int
    ids: list[int]
    split: int
    first: int
    offsets: Offsets


def assemble(question: Sequence[int], title: Sequence[int], window: Sequence[int]) -> tuple[list[int], int, int]:
    """Assemble an input of the network.

    Args:
        question: Token ids, cut after `QUESTION_TOKENS`.
        title: Token ids, cut after `TITLE_TOKENS`.
        window: Token ids of the part of the text, which are not cut.

    Returns:
        The ids, the index of the first token of the second segment, and the index of the first token of the window.
    """
    question_ids, title_ids = question[:QUESTION_TOKENS], title[:TITLE_TOKENS]
    split = len(question_ids) + 2
    return [CLS, *question_ids, SEP, *title_ids, *window, SEP], split, split + len(title_ids)


def title_text(title: str) -> str:
    """Return a title as it is read before the text, or "" for an empty title."""
    return title.replace("_", " ") + "." if title else ""


def sentence_starts(text: str, offsets: Offsets) -> list[int]:
    """Return the tokens that start a sentence: the first token, and each token after a full stop, "?" or "!".

    Args:
        text: Text that was tokenised.
        offsets: Characters of the text that each token covers.
    """
    return [i for i in range(len(offsets)) if i == 0 or text[slice(*offsets[i - 1])] in (".", "?", "!")]


def spread(count: int, starts: Sequence[int], budget: int = WINDOW_TOKENS) -> Iterator[tuple[int, int]]:
    """Yield overlapping windows of a text, which start at sentences if possible.

    Args:
        count: Number of tokens of the text.
        starts: Tokens that start a sentence.
        budget: Maximum number of tokens of a window. Must be more than the overlap of 48.

    Returns:
        For each window, its first token and the token after its last one. An empty text has one empty window.
    """
    first = 0
    while True:
        stop = min(count, first + budget)
        yield first, stop
        if stop == count:
            return
        possible = [start for start in starts if first < start <= stop - _OVERLAP]
        first = max(possible, default=stop - _OVERLAP)


def windows(tokenizer: Tokenizer, question: str, texts: Sequence[tuple[str, str]]) -> list[Window]:
    """Return the inputs of the network for a question and passages.

    Args:
        tokenizer: Tokenizer, which must not truncate.
        question: Question to answer.
        texts: Title and text of each passage. Windows refer to a passage by its index.
    """
    question_ids = tokenizer.encode(question, add_special_tokens=False).ids
    inputs: list[Window] = []
    for index, (title, text) in enumerate(texts):
        title_ids = tokenizer.encode(title_text(title), add_special_tokens=False).ids
        encoded = tokenizer.encode(text, add_special_tokens=False)
        offsets, tokens = encoded.offsets, encoded.ids
        for start, stop in spread(len(tokens), sentence_starts(text, offsets)):
            ids, split, first = assemble(question_ids, title_ids, tokens[start:stop])
            inputs.append(Window(index, ids, split, first, offsets[start:stop]))
    return inputs
