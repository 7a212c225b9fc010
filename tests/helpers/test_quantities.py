"""Quantities: their units, against Pint, and the comparisons that they refuse."""

from __future__ import annotations

from typing import Any

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_helpers.numbers import parse_quantity

REGISTRY: Any = pint.UnitRegistry()
BASES = {"length": "m", "mass": "kg", "volume": "m**3", "area": "m**2", "time": "s", "speed": "m/s", "data": "byte"}
UNITS = [
    ("mm", "mm"), ("km", "km"), ("inches", "inch"), ("feet", "foot"), ("yards", "yard"), ("miles", "mile"),
    ("nautical miles", "nautical_mile"), ("mg", "mg"), ("grams", "g"), ("tonnes", "tonne"), ("ounces", "ounce"),
    ("kms", "km"), ("kgs", "kg"), ("hrs", "hour"),
    ("lbs", "pound"), ("stone", "stone"), ("ml", "ml"), ("litres", "l"), ("cubic metres", "m**3"), ("m³", "m**3"),
    ("US gallons", "gallon"), ("km²", "km**2"), ("square miles", "mile**2"), ("hectares", "hectare"), ("acres", "acre"),
    ("sq ft", "foot**2"), ("ms", "ms"), ("minutes", "minute"), ("Stunden", "hour"), ("days", "day"), ("weeks", "week"),
    ("km/h", "km/hour"), ("mph", "mile/hour"), ("metres per second", "m/s"), ("knots", "knot"), ("kB", "kilobyte"),
    ("GB", "gigabyte"), ("MiB", "mebibyte"), ("Mbit", "megabit"), ("kilómetros cuadrados", "km**2"), ("公里", "km"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "unit"), UNITS)
def test_units_have_the_sizes_of_the_standard(written: str, unit: str) -> None:
    quantity: Any = parse_quantity(f"2.5 {written}")
    expected = (2.5 * REGISTRY.Unit(unit)).to(BASES[quantity.unit.kind]).magnitude
    assert quantity == pytest.approx(expected, rel=1e-4)


@given(st.integers(-200, 500))
def test_temperatures_have_one_scale(degrees: int) -> None:
    fahrenheit = REGISTRY.Quantity(degrees, "degC").to("degF").magnitude
    assert parse_quantity(f"{fahrenheit:.3f}0 °F") == pytest.approx(degrees, abs=1e-2)
    assert parse_quantity(f"{degrees + 273.15:.2f} K") == pytest.approx(degrees, abs=1e-6)


@pytest.mark.parametrize(
    ("greater", "smaller"),
    [
        ("4.2 km", "2,750 m"),
        ("2,300 m", "5,200 feet"),
        ("3 hours", "110 minutes"),
        ("3 tonnes", "1,150 kg"),
        ("three hours", "two hours and 50 minutes"),
        ("6 ft 2 in", "1.87 m"),
        ("5'11\"", "5'9\""),
        ("30 °C", "80 °F"),
        ("90 mph", "120 km/h"),
        ("1.2 GB", "900 MB"),
        ("$5 million", "4,900,000 dollars"),
        ("64 rooms", "40"),
        ("20 km²", "5 square miles"),
        ("3 tons", "2,000 kg"),
    ],
)
def test_quantities_compare_across_units(greater: str, smaller: str) -> None:
    assert parse_quantity(greater) > parse_quantity(smaller)
    assert not parse_quantity(greater) <= parse_quantity(smaller)
    assert max(parse_quantity(smaller), parse_quantity(greater)) == parse_quantity(greater)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("5 km", "5 kg"),
        ("5 km", "5"),
        ("$5", "€5"),
        ("5 crowns", "5 euros"),
        ("A$5", "US$5"),
        ("5 km", "5 km²"),
        ("5 °C", "5 degrees"),
        ("5 MB", "5 Mb"),
        ("12 %", "12"),
        ("3 tons", "2,900 kg"),
        ("5 gallons", "20 litres"),
        ("5 km per hour", "5 litres per hour"),
    ],
)
def test_incomparable_quantities_are_refused(a: str, b: str) -> None:
    first, second = parse_quantity(a), parse_quantity(b)
    for compare in (
        lambda: first > second,
        lambda: first == second,
        lambda: first - second,
        lambda: max(first, second),
    ):
        with pytest.raises(ValueError, match="compare"):
            compare()


def test_quantities_are_numbers() -> None:
    quantity: Any = parse_quantity("46 members")
    assert isinstance(quantity, int)
    assert f"{quantity}" == str(quantity) == "46"
    assert quantity > 45
    assert sum([parse_quantity("2 km"), parse_quantity("500 m")]) == 2500
    assert parse_quantity("3 km") * 2 == 6000
    assert round(parse_quantity("2.54 cm"), 4) == 0.0254
