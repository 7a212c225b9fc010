"""Numbers and dates are read whole or not at all: what goes on as part of one changes or refuses it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_helpers.dates import parse_date
from pyrag_helpers.names import same_entity
from pyrag_helpers.numbers import parse_number

JOINED = [
    " to 9", "–9", "-9", " or 9", " and 9", " x 9",
    " × 9", ":30", "/9", " ± 2", ".5.5", ",5,5", " thousand", " million",
    "k",
    " lakh", " crore", " Mio.", " Mrd. Euro", "e9", " × 10^9", " dozen",
    "½", " 1/2", " and a half", "abc", " 9", "²", "万",
    " ft 9 in", "'9\"", " h 9 min", " in 9", " May 1987", "%-9",
]  # fmt: skip


@given(st.integers(2, 99), st.sampled_from(JOINED))
def test_no_prefix_of_a_number_is_read(number: int, rest: str) -> None:
    assert parse_number(f"{number} rooms") == number
    try:
        read = parse_number(f"{number}{rest}")
    except ValueError:
        return
    assert read != number


@given(st.from_regex(r"[1-9][0-9.,']{0,14}[0-9]", fullmatch=True))
def test_all_figures_of_a_number_count(text: str) -> None:
    try:
        read = parse_number(text)
    except ValueError:
        return
    digits = "".join(filter(str.isdigit, text))
    assert f"{read:.15g}".replace(".", "").rstrip("0").lstrip("0") == digits.rstrip("0").lstrip("0") or len(digits) > 14


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.205.900 Einwohner", 8205900),
        ("3.400 habitants", 3400),
        ("9’250 CHF", 9250),
        ("4,25 m", 4.25),
        ("1.234,56 €", 1234.56),
        ("12,34,567 rupees", 1234567),
        ("6.1k", 6100),
        ("3.2M", 3200000),
        ("£5m", 5000000),
        ("9 lakh", 900000),
        ("2.5 crore", 25000000),
        ("1 crore 20 lakh", 12000000),
        ("8e6", 8000000),
        ("6×10^9", 6000000000),
        ("two dozen", 24),
        ("half a million", 500000),
        ("one and a half", 1.5),
        ("minus seven", -7),
        ("12 m below sea level", -12),
        ("2 3/4", 2.75),
        ("¾", 0.75),
        ("4 Mrd. Euro", 4000000000),
        ("1億2000万円", 120000000),
        ("1.750 km (1.09 mi)", 1.75),
        ("¾ million", 750000),
        ("8,- €", 8),
        ("1,767 km², 300 inhabitants", 1767),
        ("12 in 3,000 rooms", 12),
        ("about 300 people", 300),
        ("9 kg (20 lb)", 9),
    ],
)
def test_forms_of_numbers(text: str, expected: float) -> None:
    assert parse_number(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1.750", "7.500 people", "5–10", "between 40 and 50", "2.0.3", "3:45", "24/7", "A380", "12abc", "5T",
        "hundreds of men",
        "five or six", "nineteen eighty-four", "two thirds", "31.12.1999", "5 billions", "1,200¹", "9" * 400, "3 x 4 m",
        "6 ft 2 in",
        "(6,400)", "($75)", "<0.3", "≥ 4", "± 7", "- 8", "--8", ",75", "8-", "thirty-first", "one hundredth", "7 p.m.",
        "4 out of 9", "two in five", "3, 000", "2;3", "2·75", "7€20", "11 st 3 lb", "4 kg, 9 kg",
    ],
)  # fmt: skip
def test_other_forms_of_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=":"):
        parse_number(text)


def test_the_context_shows_the_decimal_mark() -> None:
    assert parse_number("2.400", "Sie kostet 3,5 Euro.") == 2400
    assert parse_number("2.400", "It costs 3.5 euros.") == 2.4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9. März 1921", date(1921, 3, 9)),
        ("le 1er août 1871", date(1871, 8, 1)),
        ("3 de julio de 1902", date(1902, 7, 3)),
        ("12-Sep-2001", date(2001, 9, 12)),
        ("2018年（平成30年）5月7日", date(2018, 5, 7)),
        ("ngày 7 tháng 5 năm 1987", date(1987, 5, 7)),
        ("12–14 May 1987", date(1987, 5, 12)),
        ("12 May – 3 June 1987", date(1987, 5, 12)),
        ("May 12–14, 1987", date(1987, 5, 12)),
        ("06/2021", date(2021, 6, 1)),
        ("Q3 2021", date(2021, 7, 1)),
        ("born 2 Dec 2000", date(2000, 12, 2)),
        ("was set 1990", date(1990, 1, 1)),
        ("2021-Q3", date(2021, 7, 1)),
        ("the third quarter of 2021", date(2021, 7, 1)),
        ("H2 2021", date(2021, 7, 1)),
        ("June the 9th, 2021", date(2021, 6, 9)),
        ("09JUN2021", date(2021, 6, 9)),
        ("2021-Jun-09", date(2021, 6, 9)),
        ("Jun-09-2021", date(2021, 6, 9)),
        ("9.VI.2021", date(2021, 6, 9)),
        ("9 June, in the year 2021", date(2021, 6, 9)),
        ("2021-06-09T23:59", date(2021, 6, 9)),
    ],
)
def test_forms_of_dates(text: str, expected: date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "12 xyzber 1921", "03/04/1999", "1.6.21", "2005-06", "31 April 1912", "2021-13-01", "平成30年5月7日",
        "2020-W05-3", "2020-W05", "2020W053", "2020-136", "week 9 of 2021", "KW 9/2021", "Q5 2021",
        "fifth quarter of 2021",
        "2021-00-09", "00.06.2021", "0 June 2021", "9 6 2021", "2021 6 9", "9/6 2021", "2021-6", "2021-06-xx",
        "2021-06-099", "2021-06-09T25:61", "9.XIV.2021",
    ],
)  # fmt: skip
def test_other_forms_of_dates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=":"):
        parse_date(text)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("F", "F#", False),
        ("D++", "D", False),
        ("B+", "B-", False),
        ("C++ compiler", "C compiler", False),
        ("St. Gallen", "Saint Gallen", True),
        ("Mt. Harrow", "Mount Harrow", True),
        ("Ft. Lee", "Fort Lee", True),
        ("Dr. Ann Lee", "Doctor Ann Lee", True),
        ("Mill St.", "Mill Street", True),
        ("Anna Müller", "Anna Mueller", True),
        ("Tromsø", "Tromsoe", True),
        ("Aalborg", "Ålborg", True),
        ("Muller", "Mueller", False),
    ],
)
def test_signs_and_abbreviations_of_names(a: str, b: str, same: bool) -> None:
    assert same_entity(a, b) is same
    assert same_entity(b, a) is same


@pytest.mark.parametrize(
    "text", ["May" + " " * 50_000 + "x", "1 " * 50_000, "a" * 200_000, "1," * 50_000, "9" * 200_000]
)
def test_long_hostile_texts_are_read_in_linear_time(text: str) -> None:
    for read in (parse_number, parse_date):
        with pytest.raises(ValueError, match=":"):
            read(text)
