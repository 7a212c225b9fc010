"""Limits, units, signs and alternatives in conditions on tables."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_helpers.columns import column_marks, column_values
from pyrag_helpers.tables import table_value
from pyrag_helpers.tables.words import TableError

SHOPS = [
    {
        "title": "shops",
        "rows": [
            {"Shop": "Ash", "Town": "Bray", "Growth": "14.5 %", "Margin": "9 %", "Load (g)": 2500, "Fee": "80 €"},
            {"Shop": "Bay", "Town": "Bray", "Growth": "-2 %", "Margin": "21 %", "Load (g)": 700, "Fee": "120 €"},
            {"Shop": "Cob", "Town": "Lund", "Growth": "6 %", "Margin": None, "Load (g)": 1200, "Fee": "45 €"},
            {"Shop": "Dun", "Town": "Kiel", "Growth": "10 %", "Margin": "12 %", "Load (g)": 0, "Fee": None},
        ],
    }
]
CREWS = [
    {
        "title": "Trophy table",
        "rows": [
            {"Crew": "Reds", "Gold": 5, "Silver": 1, "Total": 6},
            {"Crew": "Blues", "Gold": 3, "Silver": 4, "Total": 7},
            {"Crew": "Greys", "Gold": 0, "Silver": 2, "Total": 2},
        ],
    }
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("shops with a growth above 10 %", 1),
        ("shops with a growth of at least 10 percent", 2),
        ("shops with a growth between 5 and 12 %", 2),
        ("shops with a negative growth", 1),
        ("shops with a growth of more than -5", 4),
        ("shops with a growth below zero", 1),
        ("shops with a load of more than 1 kg", 2),
        ("shops with a load between 1 and 2 kg", 1),
        ("shops with a fee of more than 50 euros", 2),
        ("shops with a growth above 12 % or a margin above 20 %", 2),
        ("shops in Bray or Lund with a growth above 5 %", 2),
        ("shops with a fee of 80 or more", 2),
        ("shops with no load", 1),
        ("shops without a margin", 1),
    ],
)
def test_limits_are_read_with_their_units(where: str, expected: int) -> None:
    assert table_value(SHOPS, "count", where=where) == expected


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("shops with a fee of more than 50 dollars", "in 'dollars', and the column 'Fee' is not"),
        ("shops with a load of more than 10 %", "in '%', and the column"),
        ("shops with a load of more than 3 km", "in 'km', and the column"),
        ("shops in Bray or with a growth above 10 % and a margin above 5 %", "joins"),
        ("shops in Lund or with a load above 2000", "joins|excludes"),
    ],
)
def test_other_units_and_mixed_alternatives_are_refused(where: str, reason: str) -> None:
    if "Lund or" in where:
        assert table_value(SHOPS, "count", where=where) == 2
        return
    with pytest.raises(TableError, match=reason):
        table_value(SHOPS, "count", where=where)


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("average", {"column": "growth"}, "7.125%"),
        ("median", {"column": "growth"}, "8%"),
        ("difference", {"column": "growth", "where": ("Ash", "Bay")}, "16.5%"),
        ("highest", {"column": "growth", "show": "shop"}, "Ash"),
        ("sum", {"column": "load", "where": "shops in Bray in kg"}, "3.2 kg"),
        ("average", {"column": "load", "where": "in kg"}, "1.1 kg"),
    ],
)
def test_percentages_and_units_are_computed(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value(SHOPS, how, **arguments) == expected


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("sum", {"column": "gold trophies", "by": "crew", "rank": "highest"}, "Reds"),
        ("count", {"where": "trophies by Blues"}, 7),
        ("count", {"where": "crews won at least 2 silver trophies"}, 2),
        ("count", {"where": "crews won more than 1 gold and fewer than 3 silver trophies"}, 1),
        ("list", {"where": "crews with no gold", "show": "crews"}, "Greys"),
    ],
)
def test_nouns_of_a_tables_name_are_not_rows(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value(CREWS, how, **arguments) == expected


def test_things_that_one_row_has_are_not_counted_as_rows() -> None:
    rows = [{name: value for name, value in row.items() if name != "Total"} for row in CREWS[0]["rows"]]
    crews = [{"title": "Trophy table", "rows": rows}]
    with pytest.raises(TableError, match="does not count its trophies"):
        table_value(crews, "count", where="trophies by Blues")
    with pytest.raises(TableError, match="has one row"):
        table_value(crews, "count", where="trophies", by="crew", rank="highest")


def test_two_header_rows_are_completed_by_the_condition() -> None:
    rows = [{"Guard": "Ann", "Hours May": 30, "Hours June": 12}, {"Guard": "Bo", "Hours May": 8, "Hours June": 40}]
    guards = [{"title": "guards", "rows": rows}]
    assert table_value(guards, "sum", column="hours", where="in June") == 52
    assert table_value(guards, "highest", column="hours", where="in May", show="guard") == "Ann"
    assert table_value(guards, "difference", column="hours", where=("Ann", "Bo in June")) == 28


def test_bracketed_numbers_of_accounts_are_negative() -> None:
    cells = ["1,900", "(4,250)", "(75)", ""]
    mark = column_marks(["Item", "2023"], [["Fees", "Rent", "Bank", "Tax"], cells], "|")[1]
    assert column_values(cells, mark) == [1900, -4250, -75, None]
    assert column_values(["(3)", "(4)"], ".") == ["(3)", "(4)"]


def test_a_last_row_of_sums_does_not_count() -> None:
    rows = [{"Post": "Fees", "2022": 900, "2023": 700}, {"Post": "Rent", "2022": -400, "2023": -450}]
    rows += [{"Post": "Bank", "2022": -20, "2023": -30}, {"Post": "Surplus", "2022": 480, "2023": 220}]
    assert table_value(rows, "sum", column="2022") == 480


def test_marks_for_yes_and_no_are_read() -> None:
    rows = [{"Pup": name, "Chipped": mark} for name, mark in (("Ada", "✓"), ("Bit", "✗"), ("Cog", "✓"))]
    pups = [{"title": "pups", "rows": rows}]
    assert table_value(pups, "count", where="pups are chipped") == 2
    assert table_value(pups, "count", where="pups are not chipped") == 1
    coded = [{"title": "pups", "rows": [{"Pup": "Ada", "Chipped": "A"}, {"Pup": "Bit", "Chipped": "R"}]}]
    with pytest.raises(TableError, match="and not which of its cells"):
        table_value(coded, "count", where="pups are chipped")


@pytest.mark.parametrize(
    ("where", "share"), [("votes from a", "40%"), ("votes from b", "60%"), ("votes from B", "60%")]
)
def test_shares_of_cells_in_small_letters(where: str, share: str) -> None:
    rows = [{"Vote": place, "List": name} for place, name in enumerate("ababb", start=1)]
    assert table_value([{"title": "votes", "rows": rows}], "share", column="votes", where=where) == share
    regions = [{"Order": place, "Region": name} for place, name in enumerate(("north", "South", "South"), start=1)]
    orders = [{"title": "orders", "rows": regions}]
    assert table_value(orders, "share", column="orders", where="orders from North") == "33.33%"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("geese are there", "not always one"),
        ("geese in the fen", "not always one"),
        ("sightings of geese", 2),
        ("fen", 2),
    ],
)
def test_rows_of_repeated_things_are_not_the_things(where: str, expected: Any) -> None:
    cells = (("fen", "geese", 40), ("moor", "geese", 7), ("fen", "ducks", 9))
    rows = [{"Place": place, "Bird": bird, "Adults": adults} for place, bird, adults in cells]
    sightings = [{"title": "sightings", "rows": rows}]
    if isinstance(expected, int):
        assert table_value(sightings, "count", where=where) == expected
        return
    with pytest.raises(TableError, match=expected):
        table_value(sightings, "count", where=where)


def test_named_rows_are_counted_by_their_kind() -> None:
    crew = [{"Person": name, "Role": role} for name, role in (("Ann", "Coach"), ("Bo", "Coach"), ("Cy", "Cook"))]
    assert table_value(crew, "count", where="coaches") == 2
    with pytest.raises(TableError, match="not always one"):
        table_value([{"Food": "Eggs", "Left": 6}, {"Food": "Rice", "Left": 2}], "count", where="eggs")


def test_no_is_a_cell_only_at_the_end() -> None:
    cells = (("A", "0 %", "no"), ("B", "4 %", "no"), ("C", "7 %", "yes"))
    debts = [{"title": "debts", "rows": [dict(zip(("Debt", "Rate", "Settled"), row, strict=True)) for row in cells]}]
    assert table_value(debts, "count", where="debts with no rate") == 1
    assert table_value(debts, "count", where="debts not settled") == 2
    with pytest.raises(TableError, match="excludes"):
        table_value(debts, "count", where="debts with no debt")


def test_having_a_number_means_more_than_zero() -> None:
    classes = [{"title": "classes", "rows": [{"Class": "Yoga", "Queue": 4}, {"Class": "Judo", "Queue": 0}]}]
    assert table_value(classes, "list", where="classes have a queue", show="classes") == "Yoga"
    assert table_value(classes, "count", where="classes with no queue") == 1


def test_verbs_without_a_column_are_not_skipped() -> None:
    repairs = [
        {"title": "repairs", "rows": [{"Device": "Phone", "Client": "Ott"}, {"Device": "Drone", "Client": "Ott"}]}
    ]
    with pytest.raises(ValueError, match="'owned' is neither"):
        table_value(repairs, "count", where="devices owned by Ott")
    pets = [{"title": "pets", "rows": [{"Pet": "Rex", "Owner": "Ott"}, {"Pet": "Tim", "Owner": "Ida"}]}]
    assert table_value(pets, "count", where="pets owned by Ott") == 1


def test_a_condition_of_groups_is_refused() -> None:
    rows = [{"Course": "A", "Teacher": "Kohl", "Credits": 6}, {"Course": "B", "Teacher": "Lund", "Credits": 2}]
    with pytest.raises(TableError, match="each group"):
        table_value([{"title": "courses", "rows": rows}], "average", column="credits", where="courses per teacher")


def test_units_are_not_counted_as_rows() -> None:
    rows = [{"Food": "Rice", "Left": 9, "Unit": "kg"}, {"Food": "Oil", "Left": 4, "Unit": "l"}]
    with pytest.raises(TableError, match="not counted in units"):
        table_value(rows, "count", where="kg of rice")


def test_a_column_named_per_thing_makes_no_groups() -> None:
    rows = [{"Inn": "Ox", "Price per bed": 30}, {"Inn": "Elk", "Price per bed": 50}]
    with pytest.raises(ValueError, match="names no column"):
        table_value(rows, "average", column="price", by="bed")
    assert table_value(rows, "average", column="price per bed") == 40
