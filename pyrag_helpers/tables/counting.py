"""Counts of the things that a noun means in a table: of rows, of names, or by a column of counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyrag_helpers.tables.clocks import duration_form
from pyrag_helpers.tables.dates import date_of
from pyrag_helpers.tables.numbers import Column, has_numbers
from pyrag_helpers.tables.vocabulary import IDS, PLAIN, QUANTITIES, SMALL
from pyrag_helpers.tables.words import (
    Row,
    TableError,
    alike_any,
    entity_column,
    filled,
    folded,
    is_key,
    is_kind,
    is_missing,
    subject_of,
)

_PLURALS = frozenset(("people", "staff", "personnel", "crew"))
_PRICES = frozenset("cost costs price prices fee value weight".split())  # noqa: SIM905
_STATES = frozenset("sold free available left lost open taken".split())  # noqa: SIM905


def counter(title: str, rows: Sequence[Row], condition: str) -> Callable[[Sequence[Row]], Any]:
    """Return how the things of a condition's noun are counted: as rows, as names, or by a column of counts.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        condition: Condition in words.

    Raises:
        TableError: The things are of the table, and it does not tell their number.
        ValueError: The rows of the table are not such things.
    """
    noun = noun_of(rows, condition)
    quantity = quantity_of(title, rows, noun, condition)
    if quantity:
        column = Column(rows, quantity)
        return lambda chosen: column.shown(sum((number for _, number in column.numbers(chosen)), Decimal(0)))
    name = entity_column(rows, noun)
    if not name:
        _refuse_other_noun(title, rows, noun)
        _refuse_unnamed(rows, noun, condition)
        return len
    names = [folded(row.get(name)) for row in rows if not is_missing(row.get(name))]
    if len(set(names)) < len(rows) and not is_key(name) and alike_any(noun, folded(title).split()):
        raise TableError(f"some cells of the column {name!r} are repeated or missing, so rows may not be {noun}")
    if len(set(names)) < len(names) and _are_ordinals(rows, name):
        raise TableError(f"the numbers of the column {name!r} repeat, and may count within groups")
    if len(set(names)) < len(names) and _names_owner(title, rows, condition):
        raise ValueError(f"the rows of the table are not {noun}")
    return lambda chosen: len({folded(row.get(name)) for row in chosen if not is_missing(row.get(name))})


def _refuse_other_noun(title: str, rows: Sequence[Row], noun: str) -> None:
    """Raise `ValueError` for a noun that is only a part of the table's name: "class" of "timetable of class 7b"."""
    columns = {word for name in rows[0] for word in folded(name).split()}
    if alike_any(noun, folded(title).split()) and not alike_any(noun, subject_of(title) | columns):
        raise ValueError(f"the rows of the table are not {noun}")


def _refuse_unnamed(rows: Sequence[Row], noun: str, condition: str) -> None:
    """Refuse a noun that is a cell, as "curlews" are, if a row is not one of them but a count, a shift or the like.

    Raises:
        TableError: The rows have no names of their own, or the noun is the name of a single row.
    """
    words = [word for word in folded(condition).split() if word not in ("the", "all", "of", "our")]
    thing = noun or (words[0] if words and words[0] not in PLAIN else "")
    if words == [thing] and not thing.endswith("s"):  # a bare cell, as programs write it
        return
    forms = _singulars(thing)
    names = [name for name in rows[0] if any(folded(row.get(name)) in forms for row in rows)]
    if not thing or not names or len(rows) < 2:
        return
    unique = [
        name for name in rows[0] if len({folded(row.get(name)) for row in rows if filled(row.get(name))}) == len(rows)
    ]
    unique = [name for place, name in enumerate(rows[0]) if name in unique and _may_name(rows, name, place)]
    if not unique or set(names) & set(unique):
        raise TableError(f"a row is not always one of the {thing}, so they are not counted")


def _singulars(noun: str) -> set[str]:
    return {noun, noun.removesuffix("s"), noun.removesuffix("es"), f"{noun[:-3]}y" if noun.endswith("ies") else noun}


def _may_name(rows: Sequence[Row], name: str, place: int) -> bool:
    """Return whether a column without repetitions may name the rows: words, or numbers of a key."""
    texts = [text for row in rows if isinstance(text := row.get(name), str)]
    is_text = len(texts) == len(rows) and all(any(map(str.isalpha, text)) and not date_of(text) for text in texts)
    return is_text or place == 0 or not IDS.isdisjoint(folded(name).split())


def _are_ordinals(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has the numbers 1, 2, 3 and so on, as lessons of a day have."""
    numbers = {row.get(name) for row in rows if not is_missing(row.get(name))}
    return numbers == set(range(1, len(numbers) + 1))


def _names_owner(title: str, rows: Sequence[Row], condition: str) -> bool:
    """Return whether a condition names a part of the table's name, as "at the school" for a "School timetable"."""
    columns = {word for name in rows[0] for word in folded(name).split()}
    cells = {word for row in rows for value in row.values() for word in folded(value).split()}
    words = [word for word in folded(condition).split() if word not in PLAIN | cells and not alike_any(word, columns)]
    words = [word for word in words if alike_any(word, folded(title).split())]
    return bool(words) and not any(alike_any(word, subject_of(title)) for word in words)


def noun_of(rows: Sequence[Row], condition: str) -> str:
    """Return the last noun of a condition before its first small word: "tickets" in "high priority tickets opened".

    Args:
        rows: Rows of the table.
        condition: Condition in words.
    """
    leading: list[str] = []
    for word in folded(condition).split():
        if word in PLAIN and leading:
            break
        if word not in PLAIN:
            leading.append(word)
    cells = {folded(value) for row in rows for value in row.values() if isinstance(value, str)}
    nouns = [word for word in leading if word not in cells]
    plurals = [word for word in nouns if word.endswith("s") or word in _PLURALS]
    return (plurals or nouns or [""])[-1]


def quantity_of(title: str, rows: Sequence[Row], noun: str, condition: str) -> str:
    """Return the column of counts that a noun means, such as "Units sold"; empty if none.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        noun: Noun in lower case.
        condition: Condition in words.

    Raises:
        TableError: Several columns fit.
    """
    if not noun and (first := next(iter(folded(condition).split()), "")):  # "kettles were sold", a cell
        names = folded(_counted_cells(rows, first)).split() if first.endswith("s") else []
        return _counted_cells(rows, first) if set(names).intersection(folded(condition).split()) else ""
    if not noun.endswith("s") and noun not in _PLURALS:
        return ""
    names = [name for name in rows[0] if noun in folded(name).split() and has_numbers(rows, name)]
    names = [name for name in names if not is_key(name) and not duration_form(rows, name)]
    if not names:
        return _counted_cells(rows, noun) or _total_of(title, rows, noun)
    words = f" {folded(condition)} "
    counts = [name for name in rows[0] if _is_state(name) and has_numbers(rows, name)]
    named = [name for name in counts if f" {folded(name)} " in words and folded(name) != noun]
    exact = [name for name in names if folded(name) == noun]
    for fitting in (named, exact if len(names) > 1 else names):
        if len(fitting) == 1:
            return fitting[0]
        if len(fitting) > 1:
            break
    raise TableError(f"several columns count {noun}: {', '.join(named or names)}")


def _is_state(name: str) -> bool:
    """Return whether a column counts the things of a row in a state, as "On loan" and "Sold" do."""
    words = folded(name).split() or [""]
    return words[0] in SMALL or words[-1].endswith("ed") or words[-1] in _STATES


def _counted_cells(rows: Sequence[Row], noun: str) -> str:
    """Return the column of counts if a noun is a cell, as "kettles" are, of which each row has several."""
    cells = {folded(value) for row in rows for value in row.values() if isinstance(value, str)}
    if not cells.intersection(_singulars(noun)):
        return ""
    names = [name for name in rows[0] if QUANTITIES.intersection(folded(name).split()) and not is_key(name)]
    names = [name for name in names if has_numbers(rows, name) and _PRICES.isdisjoint(folded(name).split())]
    if len(names) > 1:
        raise TableError(f"several columns may count {noun}: {', '.join(names)}")
    return names[0] if names else ""


def _total_of(title: str, rows: Sequence[Row], noun: str) -> str:
    """Return the column of totals if a noun is of the table's name, and each row is another thing that has several."""
    if not _names_others(title, rows, noun):
        return ""
    names = [
        name for name in rows[0] if folded(name) in ("total", "totals", "count", "number") and has_numbers(rows, name)
    ]
    return names[0] if len(names) == 1 and all(isinstance(row.get(names[0]), int | None) for row in rows) else ""


def refuse_parts_of_rows(title: str, rows: Sequence[Row], noun: str, condition: str) -> None:
    """Refuse a count of things that a single row has, as "medals of Belmar" in a medal table with a row per nation.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        noun: Noun in lower case.
        condition: Condition in words.

    Raises:
        TableError: The condition names one row, and its things are not counted in one column.
    """
    name = next((name for name in rows[0] if all(isinstance(row.get(name), str) for row in rows)), "")
    words = f" {folded(condition)} "
    if _names_others(title, rows, noun) and any(f" {folded(row[name])} " in words for row in rows):
        raise TableError(f"each row is one of the column {name!r}, and the table does not count its {noun}")


def _names_others(title: str, rows: Sequence[Row], noun: str) -> bool:
    """Return whether a noun is of the table's name, and the first column of words names other things, once each."""
    columns = {word for name in rows[0] for word in folded(name).split()}
    if not noun or alike_any(noun, columns) or not alike_any(noun, folded(title).split()):
        return False
    name = next((name for name in rows[0] if all(isinstance(row.get(name), str) for row in rows)), "")
    cells = {folded(row.get(name)) for row in rows}
    is_plain = folded(name) in ("name", "title") or is_key(name) or any(is_key(other) for other in rows[0])
    ids = any(folded(other) in ("id", "no", "nr", "number") for other in rows[0])
    return bool(name) and not is_plain and not ids and len(cells) == len(rows) and not is_kind(noun, {folded(name)})
