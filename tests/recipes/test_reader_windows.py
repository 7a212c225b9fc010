"""Windows and labels: the answer keeps its place, whatever is cut. Needs neither torch nor a tokenizer."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.embedded.reader.neural.windows import CLS, QUESTION_TOKENS, SEP, assemble, sentence_starts, spread, windows
from recipes.reader.layout import Text
from recipes.reader.windows import ExampleEncoder, cut, occurrence, token_span

TEXT = "Ada was born in London. She wrote the first program. She died in Marylebone in 1852."


@dataclass(frozen=True)
class Encoded:
    ids: list[int]
    offsets: list[tuple[int, int]]


class Words:
    """A tokenizer of words and marks; an id is 1000 and the token's place in the text."""

    def encode(self, sequence: str, *, add_special_tokens: bool) -> Encoded:
        assert not add_special_tokens
        offsets = [match.span() for match in re.finditer(r"\w+|[^\w\s]", sequence)]
        return Encoded([1000 + at for at in range(len(offsets))], offsets)


def test_an_input_is_question_title_and_window() -> None:
    ids, split, first = assemble([1, 2], [3], [4, 5])
    assert ids == [CLS, 1, 2, SEP, 3, 4, 5, SEP]
    assert (split, first) == (4, 5)


def test_long_questions_are_cut() -> None:
    ids, split, _ = assemble(list(range(200)), [], [7])
    assert split == QUESTION_TOKENS + 2
    assert ids[-2:] == [7, SEP]


def test_sentences_start_after_marks() -> None:
    assert sentence_starts(TEXT, Words().encode(TEXT, add_special_tokens=False).offsets) == [0, 6, 12]


@given(st.integers(0, 900), st.lists(st.integers(0, 900), max_size=30), st.integers(60, 250))
def test_windows_cover_every_token_in_order(count: int, starts: list[int], budget: int) -> None:
    found = list(spread(count, sorted(starts), budget))
    assert found[0][0] == 0
    assert found[-1][1] == count
    assert all(high - low <= budget for low, high in found)
    assert all(after[0] <= before[1] and after[0] > before[0] for before, after in pairwise(found))


def test_a_window_knows_its_passage_and_characters() -> None:
    first, second = windows(Words(), "Who?", [("", "One."), ("Ada", TEXT)])
    assert (first.passage, second.passage) == (0, 1)
    assert second.first == second.split + 2  # "Ada" and the full stop
    assert TEXT[slice(*second.offsets[4])] == "London"


@given(st.integers(1, 400), st.integers(8, 200), st.integers(0, 399), st.integers(0, 5), st.integers(0, 9))
def test_a_cut_keeps_the_answer(count: int, budget: int, at: int, length: int, seed: int) -> None:
    first = min(at, count - 1)
    keep = (first, min(first + length, count - 1))
    low, high = cut(count, budget, range(0, count, 17), keep, random.Random(seed))
    assert high - low <= max(budget, 1)
    assert low <= keep[0] <= keep[1] < high


def test_occurrence_prefers_whole_words_near_the_questions() -> None:
    text = "Artful men met. The art prize went to Kim."
    assert occurrence(text, "art", "who won the art prize") == (20, 23)
    long = "In May he wrote. " + "He saw many towns. " * 9 + "He married in May."
    assert occurrence(long, "May", "When was he married?") == (len(long) - 4, len(long) - 1)
    assert occurrence(text, "absent", "?") is None


def test_a_character_span_becomes_tokens() -> None:
    offsets = [(0, 3), (4, 7), (8, 12)]
    assert token_span(offsets, 4, 12) == (1, 2)
    assert token_span(offsets, 5, 6) == (1, 1)
    assert token_span(offsets, 3, 4) is None


@pytest.mark.parametrize("budget", [8, 16, 100])
@pytest.mark.parametrize("titled", [True, False])
def test_labels_point_at_the_answer(budget: int, titled: bool) -> None:
    text = Text("1", "Ada Lovelace", TEXT)
    span = occurrence(TEXT, "Marylebone", "Where did she die?")
    made = ExampleEncoder(Words()).example(
        "Where did she die?", text, span, budget=budget, titled=titled, rng=random.Random(budget)
    )
    assert made is not None
    offsets = Words().encode(TEXT, add_special_tokens=False).offsets
    place = made.ids[made.start] - 1000
    assert TEXT[slice(*offsets[place])] == "Marylebone"
    assert made.start == made.end


def test_no_answer_is_the_first_token() -> None:
    made = ExampleEncoder(Words()).example(
        "Who?", Text("1", "", TEXT), None, budget=8, titled=True, rng=random.Random(1)
    )
    assert made is not None
    assert (made.start, made.end) == (0, 0)
