from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_helpers import HELPERS
from pyrag_helpers.dates import overlap, parse_date, parse_year, years_between
from pyrag_helpers.known import is_known
from pyrag_helpers.names import common, countries, same_entity, same_name
from pyrag_helpers.numbers import parse_number, parse_quantity

DATES = st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 April 1912", date(1912, 4, 3)),
        ("April 3, 1912", date(1912, 4, 3)),
        ("Apr. 1912", date(1912, 4, 1)),
        ("1912", date(1912, 1, 1)),
        ("c. 1204", date(1204, 1, 1)),
        ("985", date(985, 1, 1)),
        ("AD 61", date(61, 1, 1)),
        ("the 3rd of April 1912, a Wednesday", date(1912, 4, 3)),
        ("(3 April 1912 – 9 May 1970)", date(1912, 4, 3)),
        ("1912-04-03", date(1912, 4, 3)),
        ("31/12/1999", date(1999, 12, 31)),
        ("12/31/1999", date(1999, 12, 31)),
        ("the 1950s", date(1950, 1, 1)),
        ("29 February 1900", date(1900, 2, 28)),
        ("a village of 5,000 people, 450 km away, founded in 1820", date(1820, 1, 1)),
    ],
)
def test_dates_are_read_in_many_forms(text: str, expected: date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize("text", ["", "unknown", "yesterday", "12 May", "Mayor", "12,345 people"])
def test_a_text_without_a_date_says_what_to_do(text: str) -> None:
    with pytest.raises(ValueError, match="is_known"):
        parse_date(text)


def test_years_before_christ_compare_as_numbers_but_are_no_dates() -> None:
    with pytest.raises(ValueError, match="parse_year"):
        parse_date("5 BC")
    assert parse_year("44 BC") < parse_year("5 BC") < parse_year("AD 14")


@given(DATES)
def test_a_date_survives_its_usual_spellings(day: date) -> None:
    assert parse_date(f"{day:%B} {day.day}, {day.year}") == day
    assert parse_date(f"born {day.day} {day:%b} {day.year} in a town") == day
    assert parse_date(day.isoformat()) == day


@given(DATES, DATES)
def test_years_between_is_symmetric_and_an_age(a: date, b: date) -> None:
    assert years_between(a, b) == years_between(b, a) >= 0
    assert abs(abs(a.year - b.year) - years_between(a, b)) <= 1


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("1900–1920", "1910–1930", "1910–1920"),
        ("from 1900 to 1920", "1910-30", "1910–1920"),
        ("since 1985", "1990–present", "1990–present"),
        ("1985–", "1980 until 1990", "1985–1990"),
        ("the 1980s", "between 1975 and 1984", "1980–1984"),
        ("1900–1910", "1910–1920", "1910"),
    ],
)
def test_overlap_is_the_intersection(a: str, b: str, expected: str) -> None:
    assert overlap(a, b) == expected
    assert overlap(b, a) == expected


def test_periods_may_be_pairs_and_need_to_meet() -> None:
    assert overlap(("1900", "1920"), ("1910", date(1930, 1, 1))) == "1910–1920"
    with pytest.raises(ValueError, match="no time in common"):
        overlap("1900–1909", "1910–1920")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("about $2.5 trillion", 2_500_000_000_000),
        ("4,810 m", 4810),
        ("twelve", 12),
        ("two hundred and five rooms", 205),
        ("twenty-one", 21),
        ("-5 °C", -5),
        ("12.5 %", 12.5),
        ("twice", 2),
    ],
)
def test_numbers_are_read_in_digits_and_words(text: str, expected: float) -> None:
    assert parse_number(text) == expected


def test_a_text_without_a_number_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="is_known"):
        parse_number("many")


@given(st.integers(min_value=0, max_value=10**12))
def test_a_number_survives_thousands_separators(number: int) -> None:
    assert parse_number(f"{number:,} people") == number


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("U.S.", "the United States", True),
        ("American", "USA", True),
        ("English", "United Kingdom", True),
        ("England", "Scotland", False),
        ("British and Indian", "India", True),
        ("Paris", "Paris, France", True),
        ("Paris, Texas", "Paris, France", False),
        ("Elvis", "Elvis Presley", True),
        ("Żółty", "ZOLTY", True),
        ("The Beatles", "Beatles", True),
        ("Sudan", "South Sudan", False),
        ("Henry IV", "Henry V", False),
        ("York", "New York", False),
        ("A", "A0", False),
        ("J. R. Quill", "John Robert Quill", True),
        ("", "", False),
    ],
)
def test_same_entity_tolerates_spelling_not_meaning(a: str, b: str, expected: bool) -> None:
    assert same_entity(a, b) is expected
    assert same_entity(b, a) is expected


@given(st.text(), st.text())
def test_text_helpers_take_any_text(a: str, b: str) -> None:
    assert same_name(a, b) == same_name(b, a)
    if is_known(a) and is_known(b):
        assert same_entity(a, b) == same_entity(b, a)
        assert len(common(a, b)) <= len(a)
    for read in (parse_date, parse_year, parse_number):
        try:
            read(a)
        except ValueError as error:
            assert ":" in str(error)  # noqa: PT017 the message must hold the cure


@given(st.from_regex(r"[a-z]{2,8}( [a-z]{2,8}){0,2}", fullmatch=True))
def test_a_name_is_itself_whatever_its_case_and_article(name: str) -> None:
    assert same_name(name, f"The {name.upper()}")


def test_common_keeps_the_first_spelling_and_order() -> None:
    assert common("tea, coffee and rice", "Rice, the Tea") == ["tea", "rice"]
    assert common("tea", "rice") == []


def test_known_is_structured_not_a_substring() -> None:
    class Found(str):
        known = False

    assert not is_known(Found("anything"))
    assert not is_known(" Unknown ")
    assert is_known("Unknown Pleasures")


def test_countries_are_found_inside_longer_texts() -> None:
    assert countries("a South Korean-born American architect") == {"south korea", "united states"}


def test_helpers_are_named_as_programs_call_them() -> None:
    assert all(name == helper.__name__ and helper.__doc__ for name, helper in HELPERS.items())


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("900 g", 0.9),
        ("about 2.4 kg", 2.4),
        ("1.2 tonnes", 1200),
        ("95 cm", 0.95),
        ("3 square kilometres", 3_000_000),
        ("90 minutes", 5400),
        ("1.5 million", 1_500_000),
        ("46 members", 46),
        ("twelve", 12),
        (7, 7),
    ],
)
def test_quantities_are_read_in_base_units(text: str | int, quantity: float) -> None:
    assert parse_quantity(text) == pytest.approx(quantity)


def test_a_text_without_a_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        parse_quantity("heavy")
