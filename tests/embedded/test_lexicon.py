"""The lexicon: its lists are sound, forms of words follow from it, and no module keeps a list of its own twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from pyrag.embedded.lexicon import any_of, measures, people, things, word_classes, words
from pyrag.embedded.lexicon.verbs import base_of, is_finite, is_past, participle_of, past_of
from pyrag.embedded.words import holds, singular, without_article, without_possessive, without_quotations

PACKAGE = Path(__file__).parents[2] / "pyrag" / "embedded"
MAX_ALIKE = 0.8  # share of the words that two lists may have in common
MIN_WORDS = 8  # of a list that is compared


def lists_in(path: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield place and words of the calls `words("…")` in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="words"), args=[ast.Constant(value=str(text))]):
                yield f"{path.name}:{node.lineno}", words(text)


def test_no_two_lists_of_words_are_much_alike() -> None:
    lists = [pair for path in sorted(PACKAGE.rglob("*.py")) for pair in lists_in(path) if len(pair[1]) >= MIN_WORDS]
    assert len(lists) > 30
    alike = [
        (first, second)
        for (first, ours), (second, others) in combinations(lists, 2)
        if len(ours & others) / len(ours | others) > MAX_ALIKE
    ]
    assert alike == []


def test_lists_hold_words_in_lower_case_once() -> None:
    lists = [
        (name, value)
        for module in (measures, people, things, word_classes)
        for name, value in vars(module).items()
        if isinstance(value, frozenset)
    ]
    assert len(lists) > 30
    assert [(name, word) for name, value in lists for word in value if word != word.lower() or " " in word] == []


def test_longer_texts_are_tried_first() -> None:
    assert re.match(any_of(("in", "in the", "a.b")), "in the mill")[0] == "in the"  # type: ignore[index]
    assert not re.fullmatch(any_of(("in", "a.b")), "axb")


@pytest.mark.parametrize(
    ("base", "past", "participle"),
    [("write", "wrote", "written"), ("sign", "signed", "signed"), ("name", "named", "named")],
)
def test_forms_of_a_verb_follow_from_each_other(base: str, past: str, participle: str) -> None:
    assert (participle_of(base), past_of(participle), base_of(past)) == (participle, past, base)


@pytest.mark.parametrize("word", ["exceed", "succeed", "proceed", "need"])
def test_base_forms_in_eed_are_no_past_forms(word: str) -> None:
    assert not is_past(word)


def test_auxiliaries_and_forms_of_verbs_are_finite() -> None:
    assert [word for word in ("is", "wrote", "hosts", "write", "mill") if is_finite(word)] == ["is", "wrote", "hosts"]


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("cities", "city"),
        ("churches", "church"),
        ("series", "series"),
        ("glass", "glass"),
        ("mills", "mill"),
        ("gas", "gas"),
    ],
)
def test_the_singular_of_a_noun(plural: str, expected: str) -> None:
    assert singular(plural) == expected


def test_superlatives_end_in_est() -> None:
    assert measures.superlatives("heavier|more costly|wider") == "heaviest|widest"


def test_articles_possessives_and_quotations_are_stripped() -> None:
    assert (without_article("The mill"), without_article("an oak"), without_article("theatre")) == (
        "mill",
        "oak",
        "theatre",
    )
    assert [without_possessive(text) for text in ("Ada’s", "the Jets'", "Jets")] == ["Ada", "the Jets", "Jets"]
    assert without_quotations('Who wrote "The Mill"?') == "Who wrote  ?"


def test_words_are_held_only_in_a_row() -> None:
    assert holds("The Kell-Bridge, at night", "kell bridge")
    assert not holds("The Kell Road Bridge", "Kell Bridge")
