"""Inputs of the neural reader: `[CLS] question [SEP] title. window [SEP]`, with windows cut at sentences.

Training and answering share it, so that the network sees at run time what it was trained on. Needs a tokenizer of the
shape of `pyrag.networks.wordpiece.WordPiece`; imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

CLS, SEP = 101, 102
QUESTION_TOKENS = 48
TITLE_TOKENS = 16
WINDOW_TOKENS = 200
_OVERLAP = 48  # least tokens that neighbouring windows share, so that no answer is cut in two

Offsets = Sequence[tuple[int, int]]


class Encoded(Protocol):
    """A tokenised text: token ids and the characters that each token covers."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...


class Tokenizer(Protocol):
    def encode(self, sequence: str, *, add_special_tokens: bool) -> Encoded:
        """Split a text into tokens.

        Args:
            sequence: The text.
            add_special_tokens: Put `[CLS]` and `[SEP]` around it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Window:
    """One input of the network. Passage tokens stand from `first` on; `offsets` are their characters in the text."""

    passage: int
    ids: list[int]
    split: int  # where the second segment begins
    first: int
    offsets: Offsets


def assemble(question: Sequence[int], title: Sequence[int], window: Sequence[int]) -> tuple[list[int], int, int]:
    """Put together one input of the network.

    Args:
        question: Token ids; those beyond `QUESTION_TOKENS` are cut off.
        title: Token ids; those beyond `TITLE_TOKENS` are cut off.
        window: Token ids of the part of the text, without limit.

    Returns:
        The ids, the place where the second segment begins, and the place where the window's own tokens begin.
    """
    asked, head = question[:QUESTION_TOKENS], title[:TITLE_TOKENS]
    split = len(asked) + 2
    return [CLS, *asked, SEP, *head, *window, SEP], split, split + len(head)


def title_text(title: str) -> str:
    return title.replace("_", " ") + "." if title else ""


def sentence_starts(text: str, offsets: Offsets) -> list[int]:
    """Return the tokens that begin a sentence: the first, and those after a full stop, question or exclamation mark.

    Args:
        text: The text that was tokenised.
        offsets: First character and the one after the last, for each of its tokens.
    """
    return [i for i in range(len(offsets)) if i == 0 or text[slice(*offsets[i - 1])] in (".", "?", "!")]


def spread(count: int, starts: Sequence[int], budget: int = WINDOW_TOKENS) -> Iterator[tuple[int, int]]:
    """Cut a text into overlapping windows, each from a sentence's start where there is one.

    Args:
        count: Tokens of the text.
        starts: Tokens that begin a sentence.
        budget: Most tokens of a window; must be above the overlap of 48.

    Returns:
        First token of each window and the one after its last; one empty window for an empty text.
    """
    low = 0
    while True:
        high = min(count, low + budget)
        yield low, high
        if high == count:
            return
        fitting = [start for start in starts if low < start <= high - _OVERLAP]
        low = max(fitting, default=high - _OVERLAP)


def windows(tokenizer: Tokenizer, question: str, texts: Sequence[tuple[str, str]]) -> list[Window]:
    """Return the inputs for one question over passages.

    Args:
        tokenizer: Makes tokens; it must not truncate.
        question: The question.
        texts: Title and text of each passage; windows name a passage by its place here.
    """
    asked = tokenizer.encode(question, add_special_tokens=False).ids
    made: list[Window] = []
    for place, (title, text) in enumerate(texts):
        head = tokenizer.encode(title_text(title), add_special_tokens=False).ids
        encoded = tokenizer.encode(text, add_special_tokens=False)
        offsets, tokens = encoded.offsets, encoded.ids
        for low, high in spread(len(tokens), sentence_starts(text, offsets)):
            ids, split, first = assemble(asked, head, tokens[low:high])
            made.append(Window(place, ids, split, first, offsets[low:high]))
    return made
