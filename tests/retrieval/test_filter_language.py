"""Filters: what can be written, what it means, and what is said of mistakes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import FilterError
from pyrag.retrieval.filters.language import MAX_CHARACTERS, filter_of, parsed
from pyrag.retrieval.filters.tree import Filter, all_of

FACTS = {"year": 2020, "team": "ops", "open": True, "tags": ["draft", 3], "score": 0.5, "day": "2024-05-02", "n.m": 1}

names = st.sampled_from(["year", "team", "open", "tags", "score", "day", "a b", "and", "größe", "`", "x-1", "Not"])
numbers = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=5)
operations = (
    st.tuples(st.sampled_from(["=", "!="]), scalars | st.none())
    | st.tuples(st.sampled_from(["<", "<=", ">", ">="]), numbers | st.text(st.characters(codec="utf-8"), max_size=5))
    | st.tuples(st.sampled_from(["in", "not in"]), st.lists(numbers, min_size=1, max_size=3))
    | st.tuples(st.just("contains"), scalars)
    | st.tuples(st.just("exists"), st.booleans())
)
fields = names.filter(lambda name: name != "and")  # which a mapping cannot name
comparisons = st.builds(lambda name, one: {name: {one[0]: one[1]}}, fields, operations)
mappings = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(lambda key, some: {key: some}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=1))
        | st.builds(lambda one: {"not": one}, inner)
    ),
    max_leaves=6,
)
records = st.dictionaries(names, scalars | st.lists(scalars, max_size=3), max_size=5)


@pytest.mark.parametrize(
    "text",
    [
        'team = "ops"', "team == 'ops'", "year >= 2020 and team in ('ops', 'hr')", "not (year < 2020)", "score = 5e-1",
        "tags contains 'draft' and tags contains 3", "exists year AND NOT exists nothing", "nothing = null",
        "year != null",
        "n.m = 1", "`n.m` = 1.0", "day >= '2024-05-01' and day < '2024-05-02T12:00'", "team not in ['hr']",
        "tags not contains 'final'", "year = 1 or year = 2020 and team = 'ops'", "open != false", "team contains 'ops'",
    ],
)  # fmt: skip
def test_filters_that_pass(text: str) -> None:
    assert parsed(text).matches(FACTS)
    assert not parsed(text).negated().matches(FACTS)
    assert str(parsed(str(parsed(text)))) == str(parsed(text))


@pytest.mark.parametrize(
    "text",
    [
        "nothing = 1", "nothing != 1", "nothing < 1", "nothing >= 1", "nothing in (1)", "nothing not in (1)",
        "nothing contains 1", "nothing not contains 1",  # missing
        'year = "2020"', 'year != "x"', "open = 1", "open != 0", "team < 5", "tags = 'draft'", "tags in (3)",
    ],
)  # fmt: skip
def test_neither_a_comparison_nor_its_opposite_passes(text: str) -> None:
    assert not parsed(text).matches(FACTS)
    assert not parsed(f"not ({text})").matches(FACTS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the filter is empty: write a comparison, such as"),
        ("team = ops", "at character 8, 'ops': expected a value; put a text in quotes: \"ops\""),
        ("true or team = 'x'", "at character 1, 'true': expected the name of a field"),
        ("= 3", "at character 1, '=': expected the name of a field, such as year"),
        ("year >", 'at its end: expected a value, such as 2020 or "ops"'),
        ("team = 'x", 'at character 8, "\'x": a text that does not end'),
        ("a in (1, 'x')", "at character 6, '(': its values must be all texts"),
        ("a in 1", "expected values in brackets"),
        ("a < true", "at character 5, 'true': only = and != compare with"),
        (
            "day >= 2024-05-01",
            "at character 12, '-05': expected and, or, or the end; put a date in quotes: \"2024-05-01\"",
        ),
        ("a = 1 b", "at character 7, 'b': expected and, or, or the end"),
        ("((a = 1)", "at its end: expected )"),
        ("a ! 3", "at character 3, '! 3': a character that means nothing"),
        ("a = 1e999", "a number that is too large"),
        ("a = 99999999999999999999", "a number that is too large"),
        ('a = "\\ud800"', "a text with a wrong \\"),
        ("a ~ 1", "character 3"),
        ("a not = 1", "expected in or contains"),
        ("a<1 or " * 1020 + "a<", "its end: expected a value"),
        ("(" * 50 + "a = 1" + ")" * 50, "nested more than"),
        ("not " * 500 + "a = 1", "nested more than"),
        ("a = '" + "x" * MAX_CHARACTERS + "'", f"use at most {MAX_CHARACTERS}"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, says: str) -> None:
    with pytest.raises(FilterError) as caught:
        filter_of(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("given_", "same"),
    [
        ({"year": {">=": 2020, "<": 2030}, "team": "ops"}, 'year >= 2020 and year < 2030 and team = "ops"'),
        ({"team": ["a", "b"]}, 'team in ("a", "b")'),
        (
            {"or": [{"a": None}, {"not": {"b": {"contains": "x"}, "c": True}}]},
            'not exists a or b not contains "x" or c != true',
        ),
        ({"a": {"exists": False}, "and": [{"b": 1}, {"b": 1}]}, "not exists a and b = 1"),
    ],
)  # fmt: skip
def test_mappings_say_the_same(given_: dict[str, Any], same: str) -> None:
    assert str(filter_of(given_)) == same == str(parsed(same))


@pytest.mark.parametrize(
    "given_",
    [
        {}, [], 5, {"a": {}}, {"a": {"~": 1}}, {"a": {"in": "x"}}, {"a": []}, {"a": [1, "x"]}, {"a": {"<": True}},
        {"and": []}, {"or": "x"}, {"not": 1}, {"a": {"exists": 1}}, {"a": float("nan")}, {"a": 10**30}, {"": 1},
        {"a": {"contains": None}}, {"a": "\ud800"}, {"a": {"b": {"c": 1}}}, {1: 2}, {"a": [*range(5000)]},
        {"and": [{"a": 1}] * 300},
    ],
)  # fmt: skip
def test_mappings_that_are_no_filters(given_: Any) -> None:
    with pytest.raises(FilterError):
        filter_of(given_)


def test_a_mapping_nested_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["not"] = endless
    with pytest.raises(FilterError, match="nested more than"):
        filter_of(endless)


@given(mappings, records)
def test_the_text_of_a_filter_means_the_filter(mapping: dict[str, Any], record: dict[str, Any]) -> None:
    where = filter_of(mapping)
    assert where is not None
    again = parsed(str(where))
    assert str(again) == str(where)
    assert again.matches(record) == where.matches(record)
    assert not (where.matches(record) and where.negated().matches(record))


@given(mappings, mappings, records)
def test_joined_filters_pass_what_both_pass(one: Any, other: Any, record: dict[str, Any]) -> None:
    parts: list[Filter | None] = [filter_of(one), filter_of(other), None]
    joined = all_of(*parts)
    assert joined is not None
    assert joined.matches(record) == all(part.matches(record) for part in parts if part is not None)
    assert all_of(None, None) is None


@given(st.text(max_size=60) | st.text("ab =<>!()\"'`and or not in contains exists 1 [],\\", max_size=40))
def test_any_text_is_a_filter_or_a_sentence(text: str) -> None:
    with suppress(FilterError):
        where = parsed(text)
        assert str(parsed(str(where))) == str(where)
