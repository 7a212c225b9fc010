"""Groups, rankings, shares and dates over tables as people have them, and what a table refuses."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest

from pyrag_helpers.tables import table_value
from pyrag_helpers.tables.words import TableError

LOANS = [
    {
        "Loan no": "L1",
        "Reader": "Ana",
        "Branch": "Mitte",
        "Lent": "2024-01-09",
        "Returned": "2024-01-20",
        "Fee": "1,50 €",
    },
    {"Loan no": "L2", "Reader": "Bob", "Branch": "Mitte", "Lent": "2024-02-02", "Returned": None, "Fee": "12,00 €"},
    {
        "Loan no": "L3",
        "Reader": "Ana",
        "Branch": "Nord",
        "Lent": "2024-02-17",
        "Returned": "2024-03-01",
        "Fee": "0,50 €",
    },
    {"Loan no": "L4", "Reader": "Cem", "Branch": "Mitte", "Lent": "2024-05-30", "Returned": None, "Fee": "1.200,00 €"},
    {"Loan no": "Total", "Reader": None, "Branch": None, "Lent": None, "Returned": None, "Fee": "1.214,00 €"},
]
SHOPS = [
    {"Shop": "Quay", "Town": "Lund", "Staff": 4, "Rent (EUR)": 900, "Area": "80 m²", "Parking": "yes"},
    {"Shop": "Hill", "Town": "Lund", "Staff": 9, "Rent (EUR)": 1500, "Area": "140 m²", "Parking": "no"},
    {"Shop": "Dock", "Town": "Ystad", "Staff": 6, "Rent (EUR)": None, "Area": "95 m²", "Parking": "yes"},
]


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("count", {"where": "loans"}, 4),
        ("count", {"where": "loans", "by": "branch"}, {"Mitte": 3, "Nord": 1}),
        ("count", {"where": "loans", "by": "reader", "rank": "highest"}, "Ana"),
        ("count", {"where": "readers"}, 3),
        ("count", {"where": "loans of Ana in Mitte"}, 1),
        ("count", {"where": "loans not in Mitte"}, 1),
        ("count", {"where": "loans have not been returned"}, 2),
        ("count", {"where": "loans in Mitte without a returned date"}, 2),
        ("count", {"where": "loans lent in February"}, 2),
        ("count", {"where": "loans lent after 2 February 2024"}, 2),
        ("count", {"where": "loans lent before March 2024"}, 3),
        ("count", {"where": "loans with a fee over 1"}, 3),
        ("sum", {"column": "fee", "by": "branch", "rank": "highest"}, "Mitte"),
        ("sum", {"column": "fee"}, "1214 €"),
        ("median", {"column": "fee"}, "6.75 €"),
        ("sum", {"column": "fee", "by": "reader"}, {"Ana": "2 €", "Bob": "12 €", "Cem": "1200 €"}),
        ("sum", {"column": "fee", "by": "reader", "rank": "highest", "top": 2}, "Cem, Bob"),
        ("highest", {"column": "fee", "show": "loan", "top": -2}, "L2"),
        ("earliest", {"column": "lent", "show": "reader"}, "Ana"),
        ("latest", {"column": "lent"}, "2024-05-30"),
        ("share", {"column": "loans", "where": "loans in Mitte"}, "75%"),
        ("distinct", {"column": "readers", "where": "Mitte"}, 3),
        ("list", {"where": "loans in Mitte", "show": "loans"}, "L1, L2, L4"),
    ],
)  # fmt: skip
def test_questions_over_loans_are_computed(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value([{"title": "loans", "rows": LOANS}], how, **arguments) == expected


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("count", {"where": "staff in Lund"}, 13),
        ("count", {"where": "shops in Lund"}, 2),
        ("count", {"where": "shops with parking and more than 5 staff"}, 1),
        ("sum", {"column": "staff", "by": "town", "rank": "highest"}, "Lund"),
        ("average", {"column": "rent"}, "1200 EUR"),
        ("highest", {"column": "area", "show": "shop"}, "Hill"),
        ("difference", {"column": "area", "where": ("Hill", "Quay")}, "60 m²"),
        ("share", {"column": "staff", "where": "staff in Ystad"}, "31.58%"),
    ],
)
def test_columns_of_counts_and_units_are_read(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value([{"title": "shops", "rows": SHOPS}], how, **arguments) == expected


@pytest.mark.parametrize(
    ("rows", "how", "arguments", "reason"),
    [
        ([{"Load": "A", "Weight": "2 t"}, {"Load": "B", "Weight": "30 kg"}], "highest",
         {"column": "weight", "show": "load"}, "different units: kg, t"),
        ([{"Trip": "A", "Cost": "$5"}, {"Trip": "B", "Cost": "€4"}], "sum", {"column": "cost"}, "different units"),
        ([{"Trip": "A", "Cost": 5}, {"Trip": "B", "Cost": "4 €"}], "sum", {"column": "cost"}, "different units"),
        ([{"Trip": "A", "Cost": "5 €"}, {"Trip": "B", "Cost": "about 4"}], "sum", {"column": "cost"}, "not a number"),
        ([{"Trip": "A", "Gross cost": 5, "Net cost": 4}], "sum", {"column": "cost"}, "several columns"),
        ([{"Trip": "A", "From": "Rom", "To": "Bari"}, {"Trip": "B", "From": "Bari", "To": "Rom"}], "count",
         {"where": "trips Rom"}, "several columns"),
        ([{"Trip": "A", "Start": "2024-01-02", "End": "2024-01-04"}], "count", {"where": "trips in January"},
         "several columns"),
        ([{"Item": "A", "Stock": 4}, {"Item": "B", "Stock": 0}], "count", {"where": "items in stock"},
         "without a limit"),
        ([{"Item": "A", "Kind": "red", "State": "new"}, {"Item": "B", "Kind": "blue", "State": "old"}], "count",
         {"where": "items with kind blue or state new"}, "'or'"),
        ([{"Team": "A", "Points": 5}, {"Team": "B", "Points": 4}, {"Team": "B", "Points": 4}], "highest",
         {"column": "points", "show": "team"}, "rank differently"),
    ],
)  # fmt: skip
def test_what_a_table_does_not_give_is_refused(rows: Any, how: str, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        table_value(rows, how, **arguments)


def test_words_of_other_things_are_no_refusals() -> None:
    rows = [{"Trip": "A", "Cost": "$5"}, {"Trip": "B", "Cost": "€4"}]
    with pytest.raises(ValueError, match="wedding") as caught:
        table_value(rows, "sum", column="cost", where="of the wedding")
    assert not isinstance(caught.value, TableError)


def test_rows_of_totals_are_found_in_any_column() -> None:
    rows = [{"Amount": 5, "Item": "A"}, {"Amount": 7, "Item": "B"}, {"Amount": 12, "Item": "Grand total"}]
    assert table_value(rows, "sum", column="amount") == 12
    rows = [{"Amount": 5, "Item": "A"}, {"Amount": 7, "Item": "B"}, {"Amount": 12, "Item": None}]
    assert table_value(rows, "sum", column="amount") == 12
    rows = [{"Amount": 5, "Item": "Total Energies"}, {"Amount": 7, "Item": "B"}]
    assert table_value(rows, "sum", column="amount") == 12


def test_marks_of_decimals_are_read_by_the_column() -> None:
    assert (
        table_value([{"A": "x", "Price": "1.250 €"}, {"A": "y", "Price": "9,50 €"}], "sum", column="price")
        == "1259.5 €"
    )
    assert (
        table_value([{"A": "x", "Price": "$1,250"}, {"A": "y", "Price": "$9.50"}], "sum", column="price") == "$1259.5"
    )
    rows = [{"A": "x", "Price": "$1,250", "Stock": "3,050 kg"}, {"A": "y", "Price": "$12,000", "Stock": "1,200 kg"}]
    assert table_value(rows, "sum", column="price") == "$13250"
    assert table_value(rows, "sum", column="stock") == "4250 kg"
    for price in ("1.250 €", "1,250 €", "$1.250", "€1,250"):
        with pytest.raises(TableError, match="two readings"):
            table_value([{"A": "x", "Price": price}], "sum", column="price")


@pytest.mark.parametrize(
    ("compute", "column"),
    [
        (lambda rows: table_value(rows, "sum", "amount", by="customer"), ["1.5 h", "2 h 10 min"]),
        (lambda rows: table_value(rows, "sum", "amount", by="customer", rank="highest"), [3, 4]),
        (lambda rows: table_value(rows, "highest", "amount", show="customer"), [3, 4]),
        (lambda rows: table_value(rows, "count", where="items", by="customer"), [3, 4]),
    ],
)
def test_each_row_is_read_a_limited_number_of_times(compute: Callable[[Any], object], column: list[Any]) -> None:
    reads = 0

    class CountedRow(UserDict[str, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            nonlocal reads
            reads += 1
            return self.data.get(key, default)

    compute([CountedRow({"Customer": i + 10**6, "Amount": column[i % 2], "Items": 1}) for i in range(200)])
    assert reads < 200 * 100


ORDERS = [
    {"customer": "Town Library", "product": "lamp", "quantity": 6, "price": 44.0},
    {"customer": "Town Library", "product": "shelf", "quantity": 3, "price": 210.0},
    {"customer": "Hill School", "product": "valve", "quantity": 20, "price": 8.25},
]


@pytest.mark.parametrize(
    ("heading", "how", "arguments"),
    [
        ("quantity", "sum", {"column": "spent", "where": "Town Library"}),
        ("Qty", "sum", {"column": "price"}),
        ("units sold", "sum", {"column": "spent", "by": "customer", "rank": "highest"}),
        ("pieces", "sum", {"column": "price", "by": "customer"}),
        ("quantity", "share", {"column": "spent", "where": "Town Library"}),
    ],
)
def test_prices_of_pieces_are_not_added_up(heading: str, how: str, arguments: dict[str, Any]) -> None:
    rows = [{heading if name == "quantity" else name: cell for name, cell in row.items()} for row in ORDERS]
    with pytest.raises(TableError, match=rf"row\['price'\] \* row\['{heading}'\]"):
        table_value(rows, how, **arguments)


@pytest.mark.parametrize(
    ("rows", "how", "arguments", "value"),
    [
        ([{**row, "quantity": 1} for row in ORDERS], "sum", {"column": "price"}, 262.25),
        ([{"product": row["product"], "stock": 4, "price": row["price"]} for row in ORDERS], "sum", {"column": "price"},
         262.25),
        (ORDERS, "average", {"column": "price", "where": "Town Library"}, 127),
        (ORDERS, "sum", {"column": "quantity"}, 29),
        (ORDERS, "sum", {"column": "expensive", "by": "product", "rank": "highest"}, "shelf"),
        ([{"total price" if name == "price" else name: cell for name, cell in row.items()} for row in ORDERS], "sum",
         {"column": "price"}, 262.25),
    ],
)  # fmt: skip
def test_other_numbers_beside_quantities_are_added_up(rows: Any, how: str, arguments: Any, value: Any) -> None:
    assert table_value(rows, how, **arguments) == value
