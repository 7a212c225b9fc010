"""Cutting text into passages: nothing lost, limits kept, structure followed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.retrieval.documents.chunking import MAX_UNITS, MIN_UNITS, Piece, chunks, pack, sentences, units

PROSE = st.text(st.sampled_from("ab c.?!…\n。字か#=-`*|~1)é\u200b\tDr"), max_size=3000)
LONG = st.builds(
    lambda words, n: " ".join(words * n), st.lists(st.sampled_from(["a", "Bc.", "d?", "字。"])), st.integers(1, 90)
)


def cut(text: str, *, markdown: bool = False) -> list[tuple[str, str]]:
    return [(chunk.title, chunk.text) for chunk in chunks(text.splitlines(keepends=True), "file", markdown=markdown)]


def bare(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(PROSE | LONG)
def test_running_text_is_kept_whole_and_in_order(text: str) -> None:
    passages = cut(text)
    assert bare("".join(text for _, text in passages)) == bare(text)
    assert all(text.strip() and units(text) <= MAX_UNITS for _, text in passages)
    assert {title for title, _ in passages} <= {"file"}


@given(PROSE | LONG)
def test_markdown_keeps_every_word_in_a_title_or_text(text: str) -> None:
    passages = cut(text, markdown=True)
    assert all(units(text) <= MAX_UNITS for _, text in passages)
    everything = bare("".join(f"{title} {text}" for title, text in passages))
    for word in re.findall(r"[a-z1é字か]+", text):
        assert word in everything


@given(st.text(max_size=300))
def test_sentences_joined_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_most_passages_of_a_long_section_are_filled(sizes: list[int]) -> None:
    texts = [piece.text for piece in pack(Piece("word. " * size) for size in sizes)]
    assert sum(map(units, texts)) == sum(sizes)
    assert sum(units(text) < MIN_UNITS // 2 for text in texts) <= 1 + len(texts) // 3


def test_paragraphs_are_packed_together_and_lines_joined() -> None:
    text = "One line\nand its rest.\n\nAnother paragraph.\n\n- an item\n- another"
    assert cut(text) == [("file", "One line and its rest.\nAnother paragraph.\n- an item\n- another")]


def test_long_paragraphs_are_cut_between_sentences() -> None:
    sentence = "Dr. J. Smith of St. Ives, aged 3.5 years, said so on Monday. "
    passages = cut(sentence * 40)
    assert [units(text) for _, text in passages] == [130] * 4
    assert all(text.endswith("Monday.") and text.startswith("Dr.") for _, text in passages)


def test_chinese_is_cut_at_its_own_full_stops() -> None:
    passages = cut("星河是一部电影。导演是王伟。" * 40)
    assert len(passages) > 2
    assert all(text.endswith("。") for _, text in passages)


def test_headings_make_title_paths() -> None:
    text = """# Notes

Intro.

## Work `x`
Job.

### Deep ###
Down.

Setext
------
Old style.

## Empty
"""
    assert cut(text, markdown=True) == [
        ("Notes", "Intro."),
        ("Notes > Work x", "Job."),
        ("Notes > Work x > Deep", "Down."),
        ("Notes > Setext", "Old style."),
        ("Notes > Empty", "Empty"),
    ]


def test_without_a_first_heading_the_file_is_the_title() -> None:
    assert cut("Intro.\n## A\nText.\n### B\nMore.\n### C\nYet more.", markdown=True) == [
        ("file", "Intro."),
        ("file > A", "Text."),
        ("file > A > B", "More."),
        ("file > A > C", "Yet more."),
    ]


def test_code_is_not_a_heading_and_keeps_its_lines() -> None:
    assert cut("# T\n```sh\n# no heading\nls\n```\n#hashtag", markdown=True) == [
        ("T", "```sh\n# no heading\nls\n``` #hashtag"),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", " \t\n"])
def test_nothing_gives_nothing(text: str) -> None:
    assert cut(text) == cut(text, markdown=True) == []


def _words(text: str) -> str:
    """Without what marks a heading, or code in one, which its text does not show."""
    return "".join(text.split()).lstrip("#").rstrip("#=`")


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["# A b", "word " * 9, "Some. Text 长江亚洲。", "", "===", "```", "- item", "x" * 99])),
    st.booleans(),
)
def test_a_place_holds_the_words_of_its_text(lines: list[str], markdown: bool) -> None:
    text = "\n".join(lines) * 5
    last = 0
    for chunk in chunks(text.splitlines(keepends=True), "file", markdown=markdown):
        there = text[chunk.start : chunk.end]
        assert _words(there) == _words(chunk.text)
        assert not there[0].isspace()
        assert not there[-1].isspace()
        assert chunk.start >= last
        last = chunk.end
