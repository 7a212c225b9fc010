"""Computations over rows of tables, with columns and conditions in words."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_helpers.tables import table_value
from pyrag_helpers.tables.words import TableError

STAFF = {
    "title": "staff",
    "source": "staff.csv",
    "rows": [
        {"Name": "Ada Lind", "Office": "Berlin", "Salary": 52000, "Start": "2021-03-01", "Remote": "yes"},
        {"Name": "Ben Krug", "Office": "Oslo", "Salary": 48000, "Start": "2019-11-15", "Remote": "no"},
        {"Name": "Cleo Marsh", "Office": "Berlin", "Salary": 61500, "Start": "2020-07-01", "Remote": "no"},
        {"Name": "Dan Oduya", "Office": "Lisbon", "Salary": None, "Start": "2021-01-09", "Remote": "yes"},
    ],
}
PRICES = {
    "title": "Price list",
    "source": "prices.md",
    "rows": [
        {"Product": "Heron lamp", "Price (EUR)": 49.9, "Stock": 12},
        {"Product": "Otter desk", "Price (EUR)": 310.0, "Stock": 4},
        {"Product": "Plover chair", "Price (EUR)": 129.5, "Stock": 27},
    ],
}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("employees are in Berlin", 2),
        ("of our colleagues in Berlin or Oslo", 3),
        ("employees", 4),
        ("employees earn more than 50,000 euros", 2),
        ("employees have a salary of at most 48000", 1),
        ("employees started in 2021", 2),
        ("employees started in January 2021", 1),
        ("employees in Berlin are not remote", 1),
        ("employees are remote", 2),
        ("staff named Krug", 1),
        ("employees not in Berlin", 2),
        ("employees outside Berlin", 2),
        ("employees in Berlin who started after June 2020", 2),
        ("employees started before 2021", 2),
        ("employees started between 2019 and 2020", 2),
        ("employees started in the first quarter of 2021", 2),
        ("employees have no salary", 1),
        ("employees in Berlin who are remote", 1),
        ("employees earn between 48000 and 52000", 2),
    ],
)
def test_rows_are_counted_by_conditions_in_words(where: str, expected: int) -> None:
    assert table_value([STAFF, PRICES], "count", where=where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "students in Berlin",
        "employees in neither Berlin nor Oslo",
        "people who live in Berlin",
        "planets",
    ],
)
def test_words_that_the_table_lacks_are_refused(where: str) -> None:
    with pytest.raises(ValueError, match=r"neither a cell|excludes"):
        table_value([STAFF], "count", where=where)


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("sum", {"column": "stock"}, 43),
        ("sum", {"column": "cost", "where": "the Otter desk and the Heron lamp"}, "359.9 EUR"),
        ("average", {"column": "stock"}, 14.3333),
        ("highest", {"column": "price", "show": "product"}, "Otter desk"),
        ("lowest", {"column": "price"}, "49.9 EUR"),
        ("difference", {"column": "price", "where": ("the Otter desk", "Heron lamp")}, "260.1 EUR"),
    ],
)
def test_values_are_computed_over_a_column(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value([STAFF, PRICES], how, **arguments) == expected


def test_empty_cells_are_no_numbers() -> None:
    assert table_value([STAFF], "average", column="salary") == 53833.3333
    assert table_value([STAFF], "lowest", column="salary", show="who") == "Ben Krug"


def test_ties_name_every_row() -> None:
    rows = [{"Team": "Red", "Points": 9}, {"Team": "Blue", "Points": 9}, {"Team": "Grey", "Points": 2}]
    assert table_value(rows, "highest", column="points", show="team") == "Red, Blue"


def test_tables_that_differ_are_told_apart_by_name() -> None:
    older = {**PRICES, "title": "Prices 2020", "rows": PRICES["rows"][:2]}
    with pytest.raises(ValueError, match=r"2 tables fit and differ \(Price list.*; Prices 2020.*\): name one of them"):
        table_value([PRICES, older], "count", where="products")
    assert table_value([STAFF, {**STAFF, "title": "guests"}], "count", where="employees in Berlin") == 2


def test_units_of_columns_and_cells_are_kept() -> None:
    rows = [{"Pipe": "A", "Length": "3 m"}, {"Pipe": "B", "Length": "4.5 m"}]
    assert table_value(rows, "sum", column="length") == "7.5 m"
    assert table_value(rows, "difference", column="length", where=("A", "B")) == "1.5 m"
    rows = [{"Pipe": "A", "Price (net)": 3}, {"Pipe": "B", "Price (net)": 4}]
    assert table_value(rows, "sum", column="price") == 7


def test_numbers_in_different_units_are_not_added() -> None:
    rows = [{"Pipe": "A", "Length": "3 m"}, {"Pipe": "B", "Length": "40 cm"}]
    with pytest.raises(ValueError, match="different units"):
        table_value(rows, "sum", column="length")
    with pytest.raises(ValueError, match="no numbers"):
        table_value([{"Pipe": "A", "Length": "long"}], "sum", column="length")
    with pytest.raises(TableError, match="not a number"):
        table_value([{"Pipe": "A", "Length": "long"}, {"Pipe": "B", "Length": "4"}], "sum", column="length")
    with pytest.raises(ValueError, match="two readings"):
        table_value([{"Pipe": "A", "Length": "1.750"}], "sum", column="length")


def test_ambiguous_columns_and_cells_are_refused() -> None:
    rows = [
        {"From": "Oslo", "To": "Bergen", "Price": 4, "Tax": 1},
        {"From": "Bergen", "To": "Oslo", "Price": 5, "Tax": 1},
    ]
    with pytest.raises(ValueError, match="several columns"):
        table_value(rows, "count", where="Oslo")
    assert table_value(rows, "count", where="from Oslo") == 1
    with pytest.raises(ValueError, match="limit"):
        table_value(rows, "count", where="more than 3")


def test_amounts_with_a_column_of_currencies_are_not_mixed() -> None:
    rows = [
        {"Team": "IT", "Amount": 300, "Currency": "EUR"},
        {"Team": "HR", "Amount": 200, "Currency": "USD"},
        {"Team": "HR", "Amount": 50, "Currency": "USD"},
    ]
    for how in ("sum", "average", "highest", "lowest"):
        with pytest.raises(ValueError, match="different units: eur, usd"):
            table_value(rows, how, column="amount")
    assert table_value(rows, "sum", column="amount", where="HR") == "250 USD"
    with pytest.raises(ValueError, match="different units"):
        table_value(
            [{"A": "x", "Price": "$5"}, {"A": "y", "Price": "€4"}], "difference", column="price", where=("x", "y")
        )


def test_equal_parts_of_several_tables_are_not_the_whole() -> None:
    parts = [{"title": name, "rows": [{"Order": f"{name}{n}", "Amount": 5} for n in (1, 2)]} for name in "ab"]
    for how in ("count", "sum"):
        with pytest.raises(ValueError, match="2 tables fit"):
            table_value(parts, how, column="amount")
    assert table_value(parts, "highest", column="amount") == 5
    assert table_value([parts[0], parts[0]], "sum", column="amount") == 10


def test_amounts_are_not_revenue() -> None:
    with pytest.raises(ValueError, match="no column"):
        table_value([{"Department": "IT", "Amount": 3}], "sum", column="revenue")
