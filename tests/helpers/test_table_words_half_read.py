"""Conditions on tables that hold letters, capitals, labels and yes or no, and words that only seem to be read."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_helpers.tables.value import table_value
from pyrag_helpers.tables.words import TableError


def table(title: str, header: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [{"title": title, "rows": [dict(zip(header.split(), row, strict=True)) for row in rows]}]


CUP = table("cup", "Team Group Points", ("Alba", "A", 7), ("Boro", "A", 4), ("Cerv", "B", 9), ("Esk", "C", 6))
STAFF = table(
    "staff", "Name Dept Started Remote Flat",
    ("Ann", "IT", "2020-01-05", "yes", "x"), ("Bob", "HR", "2021-03-01", "no", None),
    ("Cid", "IT", "2022-07-15", None, "x"), ("Dee", "Sales", None, "yes", None),
)  # fmt: skip
ORDERS = table("orders", "Order Customer Units", (1001, "Ivo", 5), (1002, "Mia", 1), (1003, "Ivo", 2))
LESSONS = table("lessons of class 7", "Day Lesson Subject", ("Mo", 1, "Maths"), ("Mo", 2, "Art"), ("Tu", 1, "Maths"))
BIKES = [{"title": "survey", "rows": [{"Name": "R1", "Owns bike": "yes"}, {"Name": "R2", "Owns bike": "no"}]}]
RENTS = table("rents", "Flat Rooms Rent", ("F1", 2, "€ 800,00"), ("F2", 3, "€ 1.250,00"))


@pytest.mark.parametrize(
    ("tables", "how", "arguments", "value"),
    [
        (CUP, "count", {"where": "teams in group A"}, 2),
        (CUP, "count", {"where": "teams in groups A and B"}, 3),
        (CUP, "sum", {"column": "points", "where": "teams in group A"}, 11),
        (STAFF, "count", {"where": "staff in IT"}, 2),
        (STAFF, "count", {"where": "staff started in 2021"}, 1),
        (STAFF, "count", {"where": "staff without a flat"}, 2),
        (ORDERS, "count", {"where": "orders", "by": "customer", "rank": "highest"}, "Ivo"),
        (BIKES, "count", {"where": "names who own a bike"}, 1),
        (RENTS, "difference", {"where": ("the rent of F2", "F1")}, "€450"),
    ],
)  # fmt: skip
def test_letters_and_capitals_are_cells(
    tables: list[dict[str, Any]], how: str, arguments: dict[str, Any], value: Any
) -> None:
    assert table_value(tables, how, **arguments) == value


@pytest.mark.parametrize(
    ("tables", "how", "arguments", "error"),
    [
        (CUP, "count", {"where": "teams in group D"}, ValueError),
        (CUP, "count", {"where": "teams that start with A, in US"}, ValueError),
        (STAFF, "count", {"where": "staff in it"}, TableError),
        (STAFF, "count", {"where": "staff not remote"}, TableError),
        (ORDERS, "sum", {"column": "orders", "by": "customer", "rank": "highest"}, ValueError),
        (ORDERS, "average", {"column": "order"}, ValueError),
        (ORDERS, "count", {"where": "orders over 8"}, ValueError),
        (LESSONS, "count", {"where": "classes"}, ValueError),
        (table("timetable", "Day Lesson", ("Mo", 1), ("Mo", 2), ("Tu", 1)), "count", {"where": "lessons"}, TableError),
        (table("school timetable", "Teacher Day", ("A", "Mo"), ("A", "Tu")), "count",
         {"where": "teachers at the school"}, ValueError),
        (table("births", "Name Year", ("Ann", 1990), ("Bob", 1992)), "sum", {"column": "year"}, TableError),
        (RENTS, "count", {"where": "over 900"}, ValueError),
    ],
)  # fmt: skip
def test_words_that_are_half_read_are_refused(
    tables: list[dict[str, Any]], how: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(ValueError, match=r"\w") as raised:
        table_value(tables, how, **arguments)
    assert type(raised.value) is error


def test_plurals_of_measured_columns_are_summed() -> None:
    rents = [{"flat": name, "rent": rent} for name, rent in (("A", 700), ("B", 900), ("C", 400))]
    assert table_value(rents, "sum", column="rents") == 2000
