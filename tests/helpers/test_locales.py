"""Numbers and dates in the forms of many languages, as Babel writes them: read as they are, or refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from decimal import Decimal

import pytest
from babel.dates import format_date, get_month_names
from babel.numbers import format_compact_decimal, format_decimal
from hypothesis import given
from hypothesis import strategies as st

from pyrag_helpers.dates import parse_date, parse_year
from pyrag_helpers.months import month_of
from pyrag_helpers.numbers import parse_number

LOCALES = [
    "en",
    "de",
    "de_CH",
    "fr",
    "es",
    "it",
    "pt",
    "pt_BR",
    "nl",
    "ru",
    "pl",
    "hi",
    "en_IN",
    "zh",
    "ja",
    "sv",
    "tr",
]
DATED = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ko", "pl", "sv", "da", "fi", "cs", "tr", "el"]
DAYS = st.dates(min_value=date(1000, 1, 1), max_value=date(2399, 12, 31))


@given(st.sampled_from(LOCALES), st.decimals(-(10**12), 10**12, allow_nan=False, places=2))
def test_localized_numbers_are_read_or_refused(locale: str, number: Decimal) -> None:
    text = format_decimal(number, locale=locale)
    with suppress(ValueError):
        read = parse_number(f"{text} km")
        assert read == pytest.approx(float(number)) or (read == 1000 * float(number) and "." not in text)


@given(st.sampled_from([locale for locale in LOCALES if locale != "de_CH"]), st.integers(10**6, 10**12))
def test_whole_millions_are_read_in_every_locale(locale: str, number: int) -> None:
    assert parse_number(format_decimal(number, locale=locale)) == number


@pytest.mark.parametrize("locale", ["en", "de", "fr", "it", "nl", "ru", "pl", "zh", "ja", "sv"])
@pytest.mark.parametrize("number", [4 * 10**6, 7 * 10**9, 23 * 10**6])
def test_scales_of_languages_are_read_or_refused(locale: str, number: int) -> None:
    for style in ("long", "short"):
        with suppress(ValueError):
            assert parse_number(format_compact_decimal(number, format_type=style, locale=locale)) == number


@given(st.sampled_from(DATED), DAYS)
def test_long_dates_are_read(locale: str, day: date) -> None:
    text = format_date(day, "long", locale=locale)
    assert parse_date(text) == day
    assert parse_year(text) == day.year


@given(st.sampled_from(DATED), st.sampled_from(["medium", "full", "short"]), DAYS)
def test_other_dates_are_read_or_refused(locale: str, form: str, day: date) -> None:
    with suppress(ValueError):
        read = parse_date(format_date(day, form, locale=locale))
        assert read == day or (form != "long" and (read.month, read.day) == (1, 1) and read.year == day.year)


@pytest.mark.parametrize("locale", DATED[:8] + DATED[11:])
def test_month_names_are_those_of_the_standard(locale: str) -> None:
    for context in ("format", "stand-alone"):
        for number, name in get_month_names("wide", context, locale).items():
            assert month_of(name) == number, name
