"""Words about a table: whether a noun means its rows, and which column words mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyrag_helpers.tables.vocabulary import COLUMN_KINDS, GROUPS, IDS, KEYS, KINDS, PERSONS, PLAIN, SMALL, TOTALS

Row = Mapping[str, Any]

_WORD = re.compile(r"[^\W_]+(?:[-.'’/&+][^\W_]+)*(?:[+#]+)?|\d+(?:[.,]\d+)*")
_NUMERIC = re.compile(
    r"(?:[$€£¥]\s?|[A-Z]{3}\s)?[-+−]?\d[\d.,'’ \u00a0\u202f]*(?:\s?[%$€£¥°]|\s[^\W\d]{1,12}\.?|[kmc]?[gml])?"
)
_UNSURE = frozenset(("tbd", "tba", "na", "n a", "n/a", "nan", "null", "none", "unknown"))
_ARTICLES = ("the", "of", "a", "an", "in")


class TableError(ValueError):
    """Error for a value that a table of the question does not give, such as a sum of unlike units."""


def folded(text: object) -> str:
    """Return the words of a text in lower case, with one blank between them."""
    return _folded(str(text))


@lru_cache(maxsize=1 << 16)
def _folded(text: str) -> str:
    return " ".join(word.casefold() for word in _WORD.findall(text))


def filled(value: object) -> bool:
    """Return whether a cell has content."""
    return value is not None and bool(str(value).strip(" -–—?"))


def is_missing(value: object) -> bool:
    """Return whether a cell is empty, or has a mark for a missing value, such as "n/a"."""
    return not filled(value) or (isinstance(value, str) and value.strip().casefold() in _UNSURE)


def filled_cells(rows: Sequence[Row], name: str) -> list[Any]:
    """Return the cells of a column that are not missing.

    Args:
        rows: Rows to look at.
        name: Column.
    """
    return [row[name] for row in rows if not is_missing(row.get(name))]


def is_number(value: object) -> bool:
    """Return whether a cell was read as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_numeric(value: object) -> bool:
    """Return whether a cell is a number, or a text that is one with a sign or a unit, such as "€ 1.250,00"."""
    return is_number(value) or (isinstance(value, str) and bool(_NUMERIC.fullmatch(value.strip())))


def without_totals(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a table without those that sum up others, such as "Total"."""
    return [row for place, row in enumerate(rows) if not _is_total(rows, place)]


def _is_total(rows: Sequence[Row], place: int) -> bool:
    """Return whether a row has a label such as "Total" and no other words, or sums up the rows above it."""
    texts = [value for value in rows[place].values() if isinstance(value, str) and filled(value)]
    labels = [folded(text).split() for text in texts if not any(map(str.isdigit, text))]
    if any(TOTALS.issuperset(words) or words in (["grand", "total"], ["sub", "total"]) for words in labels if words):
        return len(labels) == 1
    if place == len(rows) - 1 and _sums_up_all(rows):
        return True
    named = len(labels) == 1 and bool(labels[0]) and not TOTALS.isdisjoint((labels[0][0], labels[0][-1]))
    lacks = not texts and any(isinstance(value, str) for value in rows[0].values())
    return (named or lacks) and _sums_up(rows, place)


def _sums_up(rows: Sequence[Row], place: int) -> bool:
    """Return whether a number of a row is the sum of at least two rows just above it."""
    for name, value in rows[place].items():
        if not is_number(value) or not value:
            continue
        total, above = 0.0, 0
        for row in reversed(rows[:place]):
            total, above = total + _as_float(row.get(name)), above + 1
            if above > 1 and abs(total - value) < 0.005:
                return True
    return False


def _sums_up_all(rows: Sequence[Row]) -> bool:
    """Return whether all numbers of the last row are the sums of all rows above, as in a row named "Result"."""
    numbers = {name: value for name, value in rows[-1].items() if is_number(value)}
    columns = {name for name in rows[0] if any(is_number(row.get(name)) for row in rows)}
    if (
        len(rows) < 4
        or set(numbers) != columns
        or (len(numbers) < 2 and not any(abs(n) >= 100 for n in numbers.values()))
    ):
        return False
    sums = {name: sum(_as_float(row.get(name)) for row in rows[:-1]) for name in numbers}
    return any(numbers.values()) and all(abs(sums[name] - number) < 0.005 for name, number in numbers.items())


def _as_float(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def known_words(title: str, rows: Sequence[Row]) -> set[str]:
    """Return the words of a table's name and of its columns.

    Args:
        title: Name of the table.
        rows: Rows of the table.
    """
    return set(folded(title).split()) | {word for name in rows[0] for word in folded(name).split()}


def subject_of(title: str) -> set[str]:
    """Return the words of a table's name that may name its rows, such as "rivers" of "List of rivers"."""
    subjects: list[str] = []
    for word in folded(title).split():
        if word in SMALL and subjects:
            break
        if word not in PLAIN:
            subjects.append(word)
    return {subjects[-1], folded(title).split()[-1]} if subjects else set()


def alike(first: str, second: str) -> bool:
    """Return whether two words are forms of the same word: singular and plural, "start" and "started".

    Args:
        first: Word in lower case.
        second: Word in lower case.
    """
    return first == second or _stem(first) == _stem(second)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    base = _singular(word)
    for ending in ("ed", "ing"):
        if len(base) > len(ending) + 3 and base.endswith(ending):
            base = base.removesuffix(ending)
            return base[:-1] if base[-1] == base[-2] else base.removesuffix("e")
    return base.removesuffix("e") if len(base) > 3 else base


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")) else word


def alike_any(word: str, known: Iterable[str]) -> bool:
    """Return whether a word is a form of one of several words.

    Args:
        word: Word in lower case.
        known: The other words.
    """
    return any(alike(word, other) for other in known)


def is_kind(word: str, known: set[str]) -> bool:
    """Return whether a noun is another word for the rows of a table with such names.

    Args:
        word: Noun in lower case.
        known: Words of the table's name and columns.
    """
    return any(word in kind and not known.isdisjoint(kind) for kind in KINDS)


def is_about(title: str, rows: Sequence[Row], noun: str) -> bool:
    """Return whether a noun names the rows of a table.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        noun: Noun of a question.
    """
    known = known_words(title, rows)
    return all(alike_any(word, known) or is_kind(word, known) for word in folded(noun).split() if word not in PLAIN)


def column_by_word(rows: Sequence[Row], word: str) -> str:
    """Return the column that one word means; empty if none or several do.

    Args:
        rows: Rows of the table.
        word: The word.
    """
    plain = folded(word)
    names = [name for name in rows[0] if any(alike(plain, part) for part in folded(name).split())]
    return names[0] if plain and plain not in PLAIN - {"amount", "cost", "value", "number"} and len(names) == 1 else ""


def only_numbers(rows: Sequence[Row]) -> str:
    """Return the only column of numbers. Raises `ValueError` if there is not exactly one."""
    names = [
        name
        for name in rows[0]
        if (values := [row[name] for row in rows if filled(row.get(name))]) and all(map(_is_numeric, values))
    ]
    if len(names) != 1:
        raise ValueError("the condition has a limit, and does not say for which column")
    return names[0]


def column_of(rows: Sequence[Row], text: str) -> str:
    """Return the column that words mean.

    Args:
        rows: Rows of the table.
        text: Words for the column, such as "price"; empty if the table has only one column of numbers.

    Raises:
        TableError: Several columns fit.
        ValueError: No column fits.
    """
    if not text.strip():
        return only_numbers(rows)
    words = [word for word in folded(text).split() if word not in _ARTICLES]
    full = [name for name in rows[0] if words and all(alike_any(word, folded(name).split()) for word in words)]
    exact = [name for name in full if len(folded(name).split()) == len(words)]
    for names in (exact, full):
        if len(names) == 1:
            return names[0]
    if not full and len(words) == 1 and (name := related(rows, words[0])):
        return name
    if full:
        raise TableError(f"{text!r} names several columns of the table: {', '.join(full)}")
    raise ValueError(f"{text!r} names no column of the table: {', '.join(rows[0])}")


def related(rows: Sequence[Row], word: str) -> str:
    """Return the column whose name is of one kind with a word, as "salary" with "earn"; empty if there is not one.

    Args:
        rows: Rows of the table.
        word: Word in lower case.
    """
    for kind in COLUMN_KINDS:
        names = [name for name in rows[0] if word in kind and kind.intersection(folded(name).split())]
        if len(names) == 1:
            return names[0]
    return ""


def entity_column(rows: Sequence[Row], noun: str) -> str:
    """Return the column that names the things of a noun: "Customer" or "customer id" for "customers"; empty if none.

    Args:
        rows: Rows of the table.
        noun: Noun in lower case.
    """
    word = noun.split()[-1] if noun else ""
    names = [name for name in rows[0] if (parts := _bare(name)) and len(parts) == 1 and alike(parts[0], word)]
    if noun and not names:
        names = [name for name in rows[0] if (parts := _bare(name)) and len(parts) == 1 and is_kind(word, set(parts))]
        names = [name for name in names if GROUPS.isdisjoint(_bare(name))]
        names = [name for name in names if not any(is_number(row.get(name)) for row in rows)]
    return next((name for name in names if is_key(name)), names[0] if names else "")


def is_key(name: str) -> bool:
    """Return whether a column holds ids, as "order id" does."""
    return len(folded(name).split()) > 1 and not IDS.isdisjoint(folded(name).split())


def _bare(name: str) -> list[str]:
    words = folded(re.sub(r"[(\[].*", "", name)).split()
    return [word for word in words if word not in KEYS] or words


def _names_people(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column's name is a word for somebody who does something, such as "Donor" or "Assignee"."""
    words = _bare(name)
    return (
        len(words) == 1
        and words[0].endswith(("er", "or", "ee", "ist"))
        and words[0]
        not in ("order", "number", "color", "floor", "paper", "quarter", "sensor", "letter", "printer", "colour")
        and all(isinstance(row.get(name), str | None) and not any(map(str.isdigit, str(row.get(name)))) for row in rows)
    )


_CLOCK = re.compile(r"\d{1,4}[:.]\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?", re.IGNORECASE)  # a time names no row


def shown_column(title: str, rows: Sequence[Row], noun: str, numbers: str) -> str:
    """Return the column that names the rows: the one that a noun means, otherwise the first one without repetitions.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        noun: Noun of the question, such as "product".
        numbers: Column of the numbers, which names nothing.

    Raises:
        ValueError: The noun is not about the table.
    """
    words = folded(noun).split()
    if not is_about(title, rows, " ".join(words[:-1])):  # "outdoor" of "outdoor products"
        raise ValueError(f"{noun!r} is not what the rows of the table are")
    names = [name for name in rows[0] if name != numbers and words and alike_any(words[-1], folded(name).split())]
    exact = [name for name in names if len(_bare(name)) == 1]
    for fitting in (names, exact):
        if len(fitting) == 1:
            return fitting[0]
    if named := [name for name in exact if not is_key(name)]:
        return named[0]
    if words and words[-1] in PERSONS:
        people = [name for name in rows[0] if PERSONS.intersection(_bare(name)) and name != numbers]
        people = people or [name for name in rows[0] if name != numbers and _names_people(rows, name)]
        if len(people) == 1:
            return people[0]
    if not is_about(title, rows, noun):
        raise ValueError(f"{noun!r} is not what the rows of the table are")
    texts = [name for name in rows[0] if name != numbers and len({row.get(name) for row in rows}) == len(rows)]
    texts = [name for name in texts if not all(_CLOCK.fullmatch(str(row.get(name))) for row in rows)]
    if not texts:
        raise ValueError("no column names the rows")
    text_columns = [name for name in texts if all(isinstance(row.get(name), str) for row in rows) and not is_key(name)]
    return next((name for name in texts if folded(name) in ("name", "title")), (text_columns or texts)[0])
