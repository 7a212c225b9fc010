"""Cells of tables with exponents keep their value, whatever the column's decimal mark."""

from __future__ import annotations

import pytest

from pyrag_helpers.columns import column_marks, read_cell


@pytest.mark.parametrize(
    ("cell", "mark", "number"),
    [
        ("3e2", ".", 300.0),
        ("3e-1", ".", 0.3),
        ("4.35e2", ".", 435.0),
        ("1.000e3", ",", 1e6),
        ("-1,5e3", ",", -1500.0),
        ("1.5", ".", 1.5),
        ("1.000", ",", 1000),
    ],
)
def test_an_exponent_counts_once(cell: str, mark: str, number: float) -> None:
    assert read_cell(cell, mark) == number


def test_marks_of_many_columns_are_read_in_linear_time() -> None:
    assert column_marks(["Price"] * 2000, [["5,741", "6,742"] * 50] * 2000, ";") == ["."] * 2000
