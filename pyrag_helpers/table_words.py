"""Words about a table: which rows a condition means, and which column."""

# ruff: noqa: E501 - lists of words are easier to read and compare on one line

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pyrag_helpers.measures.units import read_unit
from pyrag_helpers.numbers import parse_number
from pyrag_helpers.numerals import decimal_mark
from pyrag_helpers.table_vocabulary import (
    COLUMN_KINDS,
    FALSE,
    KINDS,
    MONEY,
    MONTHS,
    NEGATIVE,
    PLAIN,
    TRUE,
    UNIT_COLUMNS,
)

Row = Mapping[str, Any]

_WORD = re.compile(r"[^\W_]+(?:[-.'’/&+][^\W_]+)*(?:[+#]+)?|\d+(?:[.,]\d+)*")
_SHORT_CELL = 6  # words
_LIMIT = re.compile(
    r"\b(?P<sign>more than|over|above|greater than|higher than|at least|no less than|fewer than|less than|under|below|lower than"
    r"|at most|no more than|up to)\s+(?:[$€£]\s?)?(?P<number>\d[\d.,]*\d|\d)(?P<scale> ?(?:million|thousand|k|m)\b)?",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_BRACKETS = re.compile(r"[(\[]([^()\[\]\d]{1,16})[)\]]\s*$")
_MONEY_SIGNS = frozenset("$€£¥%")
_FIGURE = re.compile(r"(?P<before>[$€£¥]?)\s*(?P<number>[-+−]?\d[\d.,'’ ]*)\s*(?P<unit>[^\W\d_.]{0,12}\.?|[%$€£¥°])")


def folded(text: object) -> str:
    return _folded(str(text))


@lru_cache(maxsize=1 << 16)
def _folded(text: str) -> str:
    return " ".join(word.casefold() for word in _WORD.findall(text))


def matching(title: str, rows: Sequence[Row], condition: str) -> list[Row]:
    """Return the rows that a condition in words means.

    Args:
        title: Name of the table; its words may stand in the condition.
        rows: Rows of the table.
        condition: Condition, which may begin with a noun for the rows, as in "employees in Berlin"; empty for all.

    Raises:
        ValueError: A word of the condition means nothing in the table, or excludes something.
    """
    whole = folded(condition)
    columns = {name for row in rows for name, value in row.items() if isinstance(value, str) and folded(value) == whole}
    if whole and len(columns) == 1:
        name = columns.pop()
        return [row for row in rows if folded(row.get(name)) == whole]
    tests, text = _limits(rows, condition)
    words = f" {folded(text)} "
    tests, words = _cells(rows, words, tests)
    tests, words = _dates(rows, words, tests)
    tests, words = _truths(rows, words, tests)
    tests, words = _parts(title, rows, words, tests)
    left = [word for word in words.split() if word not in PLAIN]
    if negative := next((word for word in words.split() if word in NEGATIVE), ""):
        raise ValueError(f"the condition excludes something ({negative!r}), which is not computed: filter the rows")
    known = _known_words(title, rows)
    for place, word in enumerate(left):
        if not _alike_any(word, known) and not (place == 0 and _is_kind(word, known)):
            raise ValueError(f"{word!r} is neither a cell nor a column of the table: take its words from the rows")
    return [row for row in rows if all(test(row) for test in tests)]


Test = Callable[[Row], bool]


def _truths(rows: Sequence[Row], words: str, tests: list[Test]) -> tuple[list[Test], str]:
    """Find columns of yes and no whose name stands in the condition, as in "finished" or "not finished"."""
    for name in rows[0]:
        values = {folded(row.get(name)) for row in rows}
        column = folded(name)
        if not column or f" {column} " not in words or not values <= TRUE | FALSE or not values & (TRUE | FALSE - {""}):
            continue
        is_negated = f" not {column} " in words or f" not yet {column} " in words
        wanted = FALSE if is_negated else TRUE
        for phrase in (f" not yet {column} ", f" not {column} ", f" {column} "):
            words = words.replace(phrase, "  ")
        tests = [*tests, _is_one(name, set(wanted))]
    return tests, words


def _parts(title: str, rows: Sequence[Row], words: str, tests: list[Test]) -> tuple[list[Test], str]:
    """Find words that are part of short cells of one column, as "Corvex" of "Corvex GmbH"."""
    known = _known_words(title, rows)
    for word in [word for word in words.split() if word not in PLAIN | NEGATIVE and len(word) > 2]:
        names = {
            name
            for row in rows
            for name, value in row.items()
            if isinstance(value, str) and word in (parts := folded(value).split()) and len(parts) <= _SHORT_CELL
        }
        if len(names) == 1 and not _alike_any(word, known):
            tests = [*tests, _holds(names.pop(), word)]
            words = words.replace(f" {word} ", "  ")
    return tests, words


def _holds(name: str, word: str) -> Test:
    return lambda row: word in folded(row.get(name, "")).split()


def _limits(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for limits such as "more than 50 cows", and the remaining words."""
    tests: list[Test] = []
    while match := _LIMIT.search(condition):
        after = condition[match.end() :].split()[:2]
        before = condition[: match.start()].split()[-4:]
        nearby = (*after, *reversed(before))
        name = next((name for word in nearby if (name := _column(rows, word) or _related(rows, folded(word)))), "")
        limit = Decimal(str(parse_number(match["number"] + (match["scale"] or ""))))
        tests.append(_limit(name or _only_numbers(rows), match["sign"].lower(), limit))
        left = [word for word in before if _related(rows, folded(word)) != (name or None)]
        start = " ".join(condition[: match.start()].split()[: -len(before) or None])
        rest = [word for word in after if folded(word) not in MONEY and not (name and _column(rows, word) == name)]
        end = " ".join(condition[match.end() :].split()[len(after) :])
        condition = " ".join((start, *left, *rest, end))
    return tests, condition


def _limit(name: str, sign: str, limit: Decimal) -> Test:
    def test(row: Row) -> bool:
        numbers = numbers_of([row], name)
        if not numbers:
            return False
        number = numbers[0][1]
        if sign in ("at least", "no less than"):
            return number >= limit
        if sign in ("at most", "no more than", "up to"):
            return number <= limit
        return number < limit if sign in ("fewer than", "less than", "under", "below", "lower than") else number > limit

    return test


def _only_numbers(rows: Sequence[Row]) -> str:
    names = [
        name
        for name in rows[0]
        if (values := [row[name] for row in rows if row.get(name) is not None])
        and all(isinstance(value, int | float) for value in values)
    ]
    if len(names) != 1:
        raise ValueError("the condition has a limit, and does not say for which column")
    return names[0]


def _cells(rows: Sequence[Row], words: str, tests: list[Test]) -> tuple[list[Test], str]:
    """Find cells in the condition, longest first; several cells of one column are alternatives."""
    cells = {
        (name, folded(value)) for row in rows for name, value in row.items() if isinstance(value, str | int | float)
    }
    wanted: dict[str, set[str]] = {}
    cells = {(name, cell) for name, cell in cells if cell and f" {cell} " in words and cell not in PLAIN}
    for name, cell in sorted(cells, key=lambda pair: (-len(pair[1]), pair)):
        if f" {cell} " in words and (len(cell) > 1 or cell.isdigit()):
            wanted.setdefault(name, set()).add(cell)
            if sum(cell == other for _, other in cells) == 1:
                words = words.replace(f" {cell} ", "  ")
    texts = {cell for names in wanted.values() for cell in names}
    for cell in sorted(texts, key=len, reverse=True):
        words = words.replace(f" {cell} ", "  ")
    ambiguous = [cell for cell in texts if sum(cell in names for names in wanted.values()) > 1]
    if ambiguous:
        raise ValueError(f"{ambiguous[0]!r} is a cell of several columns: filter the rows by a column")
    return [*tests, *(_is_one(name, values) for name, values in wanted.items())], words


def _is_one(name: str, values: set[str]) -> Test:
    return lambda row: folded(row.get(name, "")) in values


def _dates(rows: Sequence[Row], words: str, tests: list[Test]) -> tuple[list[Test], str]:
    """Find years and months in the condition that are parts of dates."""
    names = [name for name in rows[0] if any(_DATE.match(str(row.get(name))) for row in rows)]
    prefixes = re.findall(r" ((?:19|20)\d{2}) ", words)
    months = [month for month in MONTHS if f" {month} " in words]
    if not names or not (prefixes or months):
        return tests, words
    if len(names) > 1:
        raise ValueError("the condition names a time, and the table has several columns of dates")
    numbers = [f"{MONTHS.index(month) + 1:02}" for month in months]

    def test(row: Row) -> bool:
        date = str(row.get(names[0]))
        return (not prefixes or date[:4] in prefixes) and (not numbers or date[5:7] in numbers)

    for word in (*prefixes, *months):
        words = words.replace(f" {word} ", "  ")
    return [*tests, test], words


def _known_words(title: str, rows: Sequence[Row]) -> set[str]:
    return set(folded(title).split()) | {word for name in rows[0] for word in folded(name).split()}


def _alike(first: str, second: str) -> bool:
    """Return whether two words are forms of one word: singular and plural, "start" and "started"."""
    return _stem(first) == _stem(second)


def _stem(word: str) -> str:
    base = _singular(word)
    for ending in ("ed", "ing"):
        if len(base) > len(ending) + 3 and base.endswith(ending):
            base = base.removesuffix(ending)
            return base[:-1] if base[-1] == base[-2] else base
    return base.removesuffix("e") if len(base) > 3 else base


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")) else word


def _alike_any(word: str, known: Iterable[str]) -> bool:
    return any(_alike(word, other) for other in known)


def _is_kind(word: str, known: set[str]) -> bool:
    """Return whether a noun is another word for the rows of a table with such names."""
    return any(word in kind and not known.isdisjoint(kind) for kind in KINDS)


def is_about(title: str, rows: Sequence[Row], noun: str) -> bool:
    """Return whether a noun names the rows of a table.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        noun: Noun of a question.
    """
    known = _known_words(title, rows)
    return all(_alike_any(word, known) or _is_kind(word, known) for word in folded(noun).split() if word not in PLAIN)


def _column(rows: Sequence[Row], word: str) -> str:
    """Return the column that one word means; empty if none or several do."""
    plain = folded(word)
    names = [name for name in rows[0] if any(_alike(plain, part) for part in folded(name).split())]
    return names[0] if plain and plain not in PLAIN - {"amount", "cost", "value", "number"} and len(names) == 1 else ""


def column_of(rows: Sequence[Row], text: str) -> str:
    """Return the column of numbers that words mean.

    Args:
        rows: Rows of the table.
        text: Words for the column, such as "price"; empty if the table has only one column of numbers.

    Raises:
        ValueError: No column fits, or several do.
    """
    if not text.strip():
        return _only_numbers(rows)
    words = [word for word in folded(text).split() if word not in ("the", "of", "a", "an", "in")]
    full = [name for name in rows[0] if words and all(_alike_any(word, folded(name).split()) for word in words)]
    exact = [name for name in full if len(folded(name).split()) == len(words)]
    for names in (exact, full):
        if len(names) == 1:
            return names[0]
    if not full and len(words) == 1 and (related := _related(rows, words[0])):
        return related
    raise ValueError(f"{text!r} names {'several columns' if full else 'no column'} of the table: {', '.join(rows[0])}")


def _related(rows: Sequence[Row], word: str) -> str:
    """Return the column whose name is of one kind with a word, as "salary" with "earn"; empty if none or several are."""
    for kind in COLUMN_KINDS:
        names = [name for name in rows[0] if word in kind and kind.intersection(folded(name).split())]
        if len(names) == 1:
            return names[0]
    return ""


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
    names = [name for name in rows[0] if name != numbers and words and _alike_any(words[-1], folded(name).split())]
    if len(names) == 1:
        return names[0]
    if not is_about(title, rows, noun):
        raise ValueError(f"{noun!r} is not what the rows of the table are")
    texts = [name for name in rows[0] if name != numbers and len({row.get(name) for row in rows}) == len(rows)]
    if not texts:
        raise ValueError("no column names the rows")
    return next((name for name in texts if folded(name) in ("name", "title")), texts[0])


def unit_of(rows: Sequence[Row], name: str) -> str:
    """Return the unit of a column: in brackets in its name, or in each of its cells; empty if there is none.

    Args:
        rows: Rows of the table.
        name: Column.
    """
    heading = _BRACKETS.search(name)
    cells = {
        match["unit"] or match["before"] for row in rows if (match := _FIGURE.fullmatch(str(row.get(name)).strip()))
    }
    for text in (heading[1].strip() if heading else "", cells.pop() if len(cells) == 1 else ""):
        unit, end = read_unit(text, 0)
        if text in _MONEY_SIGNS or (text and unit.kind and end == len(text)):
            return text
    return ""


def numbers_of(rows: Sequence[Row], name: str) -> list[tuple[Row, Decimal]]:
    """Return the rows that have a number in a column, with the number. Empty cells are left out.

    Args:
        rows: Rows of the table.
        name: Column.

    Raises:
        ValueError: A cell is not a number, or numbers have different units.
    """
    units: set[str] = set()
    numbers: list[tuple[Row, Decimal]] = []
    for row in rows:
        value = row.get(name)
        if value is None or (isinstance(value, str) and not value.strip(" -–—")):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{value!r} in the column {name!r} is not a number")
        number, unit = (value, "") if isinstance(value, int | float) else _figure(value, name)
        units.add(unit)
        numbers.append((row, Decimal(str(number))))
    for other in rows[0] if rows else ():
        if other != name and folded(other) in UNIT_COLUMNS:
            units.update(folded(row.get(other, "")) for row, _ in numbers)
            units.discard("")
    if len(units) > 1:
        raise ValueError(f"the numbers of the column {name!r} have different units: {', '.join(sorted(units))}")
    return numbers


def _figure(cell: str, name: str) -> tuple[int | float, str]:
    match = _FIGURE.fullmatch(cell.strip())
    if match is None:
        raise ValueError(f"{cell!r} in the column {name!r} is not a number")
    if not decimal_mark([cell]) and re.search(r"[.,]\d{3}$", match["number"].strip()):
        raise ValueError(f"{cell!r} in the column {name!r} has two readings")
    return parse_number(match["number"].strip()), (match["before"] + match["unit"]).casefold()
