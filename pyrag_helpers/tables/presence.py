"""Conditions on whether a cell has content, and on columns of yes and no: "without a phone", "finished", "no goals"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyrag_helpers.tables.vocabulary import FALSE, MARKS, SMALL, TRUE
from pyrag_helpers.tables.words import Row, TableError, column_by_word, folded, is_missing, is_number

Test = Callable[[Row], bool]

_LACKING = (
    r"(?:without|(?:have|has|had|is|are|was|were) not(?: yet)?(?: been)?|not(?: yet)? been"
    r"|(?:have|has|had|with|with an?|have an?) (?:no|missing|empty|blank)|no|lack|lacks|lacking|missing"
    r"|(?:do not|does not|don't|doesn't|not) have)(?: (?:a|an|any|the|recorded|known|valid))*"
)
_ZERO = re.compile(r"[$€£]?\s?0+(?:[.,]0+)?\s?(?:[%$€£]|[^\W\d_]{1,3})?")
_JOINING = "(?:a|an|any|the|is|are|was|were|be|been|has|have|had|their|his|her|its|yet)"
_HAVING = r"(?:with|have|has|had|having)(?: (?:a|an|any|the|recorded|known|been|already))*"


def gaps(rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    """Find columns whose cells are missing or zero, as in "without a phone number" and "no goals".

    Args:
        rows: Rows of the table.
        words: Words of the condition, each between blanks.

    Raises:
        TableError: Some cells are missing and others are zero.
    """
    tests: list[Test] = []
    for name in rows[0]:
        own = [word for word in folded(name).split() if column_by_word(rows, word) == name][:1]
        pattern = re.compile(rf" {_LACKING} (?:{'|'.join([_column_pattern(name), *map(_column_pattern, own)])})(?= )")
        has_gaps, has_zeros = (any(test(row.get(name)) for row in rows) for test in (is_missing, _is_zero))
        if not (has_gaps or has_zeros) or _says_no(rows, name) or not pattern.search(words):
            continue
        if has_gaps and has_zeros:
            raise TableError(f"some cells of the column {name!r} are missing and others are 0, and either may be meant")
        tests.append(_is_missing(name) if has_gaps else lambda row, name=name: _is_zero(row.get(name)))  # type: ignore[misc]
        words = pattern.sub(" ", words)
    return tests, words


def _is_zero(value: object) -> bool:
    return not value if is_number(value) else isinstance(value, str) and bool(_ZERO.fullmatch(value.strip()))


def _is_missing(name: str) -> Test:
    return lambda row: is_missing(row.get(name))


def _column_pattern(name: str) -> str:
    words = folded(name).split()
    if len(words) == 1 and len(words[0]) > 5 and words[0].endswith("ed"):  # "start date" for "Started"
        return rf"{re.escape(words[0][:-2])}e?d?(?: (?:date|day|time))?"
    return r"\s".join(rf"{re.escape(word)}s?" for word in words) or r"\0"


def presence(rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    """Find columns whose cells must be neither missing nor zero, as in "with a phone number" and "have a waiting list".

    Args:
        rows: Rows of the table.
        words: Words of the condition, each between blanks.
    """
    tests: list[Test] = []
    for name in rows[0]:
        pattern = re.compile(rf" {_HAVING} {_column_pattern(name)}(?= )")
        if any(_is_nothing(row.get(name)) for row in rows) and pattern.search(words):
            tests.append(lambda row, name=name: not _is_nothing(row.get(name)))  # type: ignore[misc]
            words = pattern.sub(" ", words)
    return tests, words


def _is_nothing(value: object) -> bool:
    return is_missing(value) or _is_zero(value)


def truths(rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    """Find columns of yes and no whose name stands in the condition, as in "finished" or "not finished".

    Args:
        rows: Rows of the table.
        words: Words of the condition, each between blanks.

    Raises:
        TableError: Cells are missing beside yes and no, and the condition denies the column.
    """
    tests: list[Test] = []
    for name in rows[0]:
        column = folded(name)
        if not column or not is_truth(rows, name):
            continue
        pattern = re.compile(rf" (?P<no>(?:not|not yet|un) )?{_form(column)}(?= )")
        text = words.replace(" un", " un ") if f" un{column} " in words else words
        match = pattern.search(text)
        if match is None:
            continue
        if match["no"] and _says_no(rows, name) and any(is_missing(row.get(name)) for row in rows):
            raise TableError(f"some cells of the column {name!r} are missing, which may mean no or unknown")
        tests.append(_truth_test(name, FALSE if match["no"] or match.groupdict().get("none") else TRUE))
        words = pattern.sub(" ", text)
    return tests, words


def is_truth(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has yes and no, or a mark for yes, and nothing else.

    Args:
        rows: Rows of the table.
        name: Column.
    """
    values = {_truth(row.get(name)) for row in rows}
    return values <= TRUE | FALSE and bool(values & (TRUE | FALSE - {""}))


def _says_no(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has yes and an explicit no, so that a missing cell is neither."""
    return is_truth(rows, name) and any(_truth(row.get(name)) in FALSE - {""} for row in rows)


def _form(column: str) -> str:
    """Return the pattern of a column's name in a condition: "shipped" for "Ship", "own no bike" for "Owns bike"."""
    parts = [word for word in column.split() if word not in SMALL] or column.split()
    first, *others = [rf"{re.escape(word.removesuffix('s') if len(word) > 3 else word)}(?:s|d|ed)?" for word in parts]
    return first + "".join(
        rf"(?: {_JOINING})*{'(?P<none> not| no)?' if place == 0 else ''}(?: {_JOINING})* {word}"
        for place, word in enumerate(others)
    )


def _truth(value: object) -> str:
    if isinstance(value, str) and value.strip() in MARKS:
        return MARKS[value.strip()]
    return str(value).casefold() if isinstance(value, bool) else folded("" if value is None else value)


def _truth_test(name: str, wanted: frozenset[str]) -> Test:
    return lambda row: _truth(row.get(name)) in wanted
