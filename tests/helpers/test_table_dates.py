"""Dates and times in tables: evidence of a column, cells that are not in the calendar, and times of the day."""

from __future__ import annotations

from typing import Any

import pytest

from pyrag_helpers.tables import table_value
from pyrag_helpers.tables.words import TableError


def table(title: str, name: str, *cells: Any) -> list[dict[str, Any]]:
    rows = [{"Job": f"J{place}", name: cell, "Hours": place} for place, cell in enumerate(cells, start=1)]
    return [{"title": title, "source": f"{title}.csv", "rows": rows}]


MIXED = table("jobs", "Finished", "2023-03-05", "17/03/2023", "02/04/2023", "9 May 2023")


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("count", {"where": "jobs finished in March 2023"}, 2),
        ("count", {"where": "jobs finished after 1 April 2023"}, 2),
        ("count", {"where": "jobs finished on 2 April 2023"}, 1),
        ("latest", {"show": "job"}, "J4"),
        ("sum", {"column": "hours", "by": "month"}, {"March 2023": 3, "April 2023": 3, "May 2023": 4}),
    ],
)
def test_a_day_above_twelve_decides_the_column(how: str, arguments: dict[str, Any], expected: Any) -> None:
    assert table_value(MIXED, how, **arguments) == expected


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("2023-03-05", "2023-14-02", "2023-06-01"), "'2023-14-02' in the column 'Finished'"),
        (("2023-03-05", "30.02.2023", "2023-06-01"), "'30.02.2023' in the column"),
        (("2023-03-05", "04/05/2023", "2023-06-01"), "'04/05/2023' in the column"),
        (("17/03/2023", "03/17/2023", "02/04/2023"), "'02/04/2023' in the column"),
        (("2023-03-05", "2023-06-01", "in spring"), "'in spring' in the column"),
    ],
)
def test_columns_with_unreadable_dates_are_refused(cells: tuple[str, ...], reason: str) -> None:
    jobs = table("jobs", "Finished", *cells)
    for how, where in (("count", "jobs finished in March 2023"), ("latest", ""), ("count", "jobs before June 2023")):
        with pytest.raises(TableError, match=reason):
            table_value(jobs, how, where=where)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("jobs finished after 2023-13-01", "not in the calendar"),
        ("jobs finished before 2023-02-30", "not in the calendar"),
        ("jobs finished on 31 April 2023", "not in the calendar"),
        ("jobs finished in Q7", "not a quarter"),
        ("jobs finished in week 12", "not computed"),
        ("jobs finished on 03/04/2023", "one reading"),
    ],
)
def test_impossible_times_of_conditions_are_refused(where: str, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        table_value(MIXED, "count", where=where)


def test_days_are_not_taken_for_other_cells() -> None:
    rows = [{"Run": "A", "Day": "2023-06-03", "Errors": 3}, {"Run": "B", "Day": "2023-06-04", "Errors": -3}]
    assert table_value(rows, "count", where="runs on 3 June 2023") == 1
    assert table_value(rows, "highest", column="errors", where="runs on 4 June 2023") == -3


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("trains leave before 07:00", 1),
        ("trains leave after 12:30", 1),
        ("trains leave at 09:15", 1),
        ("trains leave since 9:15 am", 2),
        ("trains leave by 1 pm", 2),
    ],
)
def test_times_of_the_day_are_compared(where: str, expected: int) -> None:
    rows = [{"Train": f"T{at}", "Leaves": at} for at in ("06:40", "09:15", "21:05", "not today")]
    assert table_value([{"title": "trains", "rows": rows}], "count", where=where) == expected


def test_columns_of_years_have_first_and_last() -> None:
    rows = [{"Shop": "A", "Opened": 1997}, {"Shop": "B", "Opened": 2016}, {"Shop": "C", "Opened": 2003}]
    shops = [{"title": "shops", "rows": rows}]
    assert table_value(shops, "latest", column="opened", show="shop") == "B"
    assert table_value(shops, "count", where="shops opened after 2000") == 2
