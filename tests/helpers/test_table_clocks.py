"""Times of the day, durations, percentages and superlatives in computations over tables."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_helpers.tables import table_value
from pyrag_helpers.tables.words import TableError

TRAMS = [
    {"Tram": "T1", "To": "Park", "Departure": "05:40", "Arrival": "06:10", "Fare (EUR)": 3},
    {"Tram": "T2", "To": "Zoo", "Departure": "12:00", "Arrival": "12:25", "Fare (EUR)": 2},
    {"Tram": "T3", "To": "Park", "Departure": "18:30", "Arrival": "19:00", "Fare (EUR)": 3},
]
PLAYS = [
    {"Play": "Ash", "Author": "Roy", "Duration": "1 h 20 min", "Year": 2011},
    {"Play": "Birch", "Author": "Orr", "Duration": "90 min", "Year": 2004},
    {"Play": "Cedar", "Author": "Roy", "Duration": "2 h 10 min", "Year": 2019},
]
STAFF = [
    {"Guard": "Ann", "Hours": "26:30", "Since": 2015},
    {"Guard": "Bo", "Hours": "8:45", "Since": 2009},
    {"Guard": "Cy", "Hours": "31:00", "Since": 2021},
]
SONGS = [{"Song": "Dew", "Length": "3:45"}, {"Song": "Elm", "Length": "2:50"}]
TIDES = [
    {"Day": "Mon", "High tide": "04:12", "Low tide": "10:25", "Height (m)": 5.1, "Depth (m)": 3},
    {"Day": "Tue", "High tide": "05:03", "Low tide": "11:14", "Height (m)": 4.9, "Depth (m)": 2},
]
SHOP = [
    {"Ware": "Pot", "Kind": "steel", "Margin": "8%", "Rent": "€20"},
    {"Ware": "Pan", "Kind": "steel", "Margin": "31%", "Rent": "€35"},
    {"Ware": "Cup", "Kind": "clay", "Margin": "13%", "Rent": "€5"},
]


@pytest.mark.parametrize(
    ("rows", "where", "expected"),
    [
        (TRAMS, "trams depart before 12:00", 1),
        (TRAMS, "trams leave by noon", 2),
        (TRAMS, "trams that arrive after 6 pm", 1),
        (TRAMS, "trams to the Park leave between 5:00 and 18:30", 2),
        (TRAMS, "departures after 11 o'clock", 2),
        (PLAYS, "plays have a duration of more than 2 hours", 1),
        (PLAYS, "plays are longer than an hour and a half", None),
        (PLAYS, "plays are longer than 85 minutes", 2),
        (PLAYS, "plays have a duration of at most 1 h 30 min", 2),
        (PLAYS, "plays are shorter than two hours", 2),
        (STAFF, "guards with hours above 26", None),
        (STAFF, "guards with hours above 26 hours", 2),
        (STAFF, "guards with hours of more than 26:30", 1),
        (SONGS, "songs are longer than 3 minutes", None),
        (SHOP, "wares have a margin below 10%", 1),
        (SHOP, "wares have a margin below 10", 1),
        (SHOP, "wares have a margin below 0.1", None),
        (SHOP, "wares have a margin of 8%", 1),
        (SHOP, "wares are cheaper than 30 euros", 2),
    ],
)
def test_rows_are_counted_by_times_durations_and_percent(rows: Any, where: str, expected: int | None) -> None:
    if expected is not None:
        assert table_value(rows, "count", where=where) == expected
        return
    with pytest.raises(ValueError, match=r"no unit|does not tell which|write it with %|neither a cell"):
        table_value(rows, "count", where=where)


@pytest.mark.parametrize(
    ("rows", "how", "arguments", "expected"),
    [
        (TRAMS, "earliest", {"column": "departure"}, "05:40"),
        (TRAMS, "latest", {"column": "leave", "where": "tram to the Park"}, "18:30"),
        (TRAMS, "latest", {"column": "arrives", "show": "tram"}, "T3"),
        (TRAMS, "lowest", {"column": "price", "show": "tram"}, "T2"),
        (TRAMS, "lowest", {"column": "price", "where": "tram to the Zoo", "show": "fare"}, "2 EUR"),
        (TIDES, "earliest", {"column": "high tide"}, "04:12"),
        (TIDES, "highest", {"column": "height", "where": "day", "show": "depth"}, "3 m"),
        (PLAYS, "sum", {"column": "duration"}, "5 h"),
        (PLAYS, "average", {"column": "duration", "where": "by Roy"}, "1 h 45 min"),
        (PLAYS, "highest", {"column": "long", "show": "play"}, "Cedar"),
        (PLAYS, "lowest", {"column": "short"}, "1 h 20 min"),
        (PLAYS, "highest", {"column": "long", "where": "play", "show": "author"}, "Roy"),
        (PLAYS, "difference", {"column": "duration", "where": ("Cedar", "Ash")}, "50 min"),
        (PLAYS, "earliest", {"column": "origin", "show": "play"}, "Birch"),
        (PLAYS, "latest", {"column": "addition", "show": "play", "top": 2}, "Cedar, Ash"),
        (STAFF, "sum", {"column": "hours"}, "66:15"),
        (STAFF, "sum", {"column": "hours", "by": "guard"}, {"Ann": "26:30", "Bo": "8:45", "Cy": "31:00"}),
        (STAFF, "latest", {"column": "addition", "show": "guard"}, "Cy"),
        (SONGS, "sum", {"column": "length"}, "6:35"),
        (SONGS, "highest", {"column": "long", "show": "song"}, "Dew"),
        (SHOP, "lowest", {"column": "price", "show": "ware"}, "Cup"),
        (SHOP, "highest", {"column": "margin", "show": "margin"}, "31%"),
        (SHOP, "highest", {"column": "margin", "show": "kind"}, "steel"),
    ],
)
def test_times_durations_and_prices_are_ranked_and_added(rows: Any, how: str, arguments: Any, expected: Any) -> None:
    assert table_value(rows, how, **arguments) == expected


@pytest.mark.parametrize(
    ("rows", "how", "arguments", "reason"),
    [
        (TRAMS, "count", {"where": "trams before 12:00"}, "several columns have times: Departure, Arrival"),
        (STAFF, "earliest", {"column": "origin", "show": "guard"}, "columns tell how old"),
        (PLAYS, "count", {"where": "plays with an author of more than 2"}, "the column 'Author' has no numbers"),
    ],
)
def test_refusals_name_the_right_column(rows: Any, how: str, arguments: Any, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        table_value(rows, how, **arguments)


def test_nouns_with_words_that_no_column_has_are_refused() -> None:
    with pytest.raises(ValueError, match="is not what the rows"):
        table_value(SHOP, "highest", column="margin", show="clay ware")
    assert table_value(SHOP, "highest", column="margin", show="name", where="clay ware") == "Cup"


def test_sold_things_are_counted_by_their_column() -> None:
    rows = [{"Toy": "Kite", "Kind": "toys", "Sold": 3}, {"Toy": "Ball", "Kind": "toys", "Sold": 4}]
    assert table_value(rows, "count", where="toys were sold") == 7
