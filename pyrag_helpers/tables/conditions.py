"""Rows of a table that a condition in words means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyrag_helpers.tables.dates import date_columns
from pyrag_helpers.tables.limits import limits
from pyrag_helpers.tables.numbers import is_unit
from pyrag_helpers.tables.presence import gaps, is_truth, presence, truths
from pyrag_helpers.tables.times import plain_times, sided_times
from pyrag_helpers.tables.vocabulary import (
    COMPARATIVES,
    IRREGULAR,
    MONEY,
    MONTHS,
    NEGATIVE,
    PLAIN,
    SMALL,
)
from pyrag_helpers.tables.words import (
    Row,
    TableError,
    alike,
    alike_any,
    column_by_word,
    folded,
    is_kind,
    is_missing,
    is_number,
    known_words,
)

Test = Callable[[Row], bool]
_SHORT_CELL = 6  # words
_DENIED = (
    r"(?:not|except|excluding|besides|other than|outside|but not|isn't|aren't|without)"
    r"(?: (?:in|from|of|at|for|the|by|a|an|is|are|be|on|based|located|assigned|to|yet))*"
)
_LIMITING = frozenset((*MONTHS, *COMPARATIVES, *MONEY)) | frozenset(
    """more less fewer over under above below least most up after before since until exactly equal greater higher
    exceeding first second third fourth last quarter week million thousand""".split()  # noqa: SIM905
)
_PREPOSITIONS = frozenset(("against", "before", "after", "under", "over", "out"))
_CAPITALS = re.compile(  # and lone letters: "from b"; "a" at the end is no article
    r"(?<![\w.'’$€£-])(?<!\d )(?:[A-Z]{1,5}|[b-hj-z]|a(?=\s*$))(?![\w'’-]|\.\w)"
)
_PREDICATES = re.compile(r" (?:are|is|was|were|been|being|get|got) (?:(?:not|yet|already|all) )*([^\W\d_]+ed)(?= )")
_PHRASES = re.compile(r"\b(come|comes|came) out\b", re.IGNORECASE)
_OR_MORE = re.compile(
    r"(?P<number>\d[\d.,]*) or (?:(?P<more>more|above|over|higher)|fewer|less|below|lower)\b", re.IGNORECASE
)


def matching(title: str, rows: Sequence[Row], condition: str, read: Sequence[str] = ()) -> list[Row]:
    """Return the rows that a condition in words means.

    Args:
        title: Name of the table; its words may stand in the condition.
        rows: Rows of the table.
        condition: Condition, which may begin with a noun for the rows, as in "employees in Berlin"; empty for all.
        read: Words and columns that the computation already uses; the condition may leave them out.

    Raises:
        TableError: The words are about the table, and the condition has several readings or cannot be computed.
        ValueError: A word of the condition means nothing in the table.
    """
    condition = _OR_MORE.sub(_at_limit, _PHRASES.sub(r"\1", condition))
    whole = folded(condition)
    columns = {name for row in rows for name, value in row.items() if isinstance(value, str) and folded(value) == whole}
    if whole and len(columns) == 1:
        name = columns.pop()
        return [row for row in rows if folded(row.get(name)) == whole]
    tests = _tests(title, rows, condition, read)
    if len(tests) > 1 and " or " in f" {whole} ":
        return _either(title, rows, condition, tests)
    return [row for row in rows if all(test(row) for test in tests)]


def _tests(title: str, rows: Sequence[Row], condition: str, read: Sequence[str]) -> list[Test]:
    """Return the tests of a condition. Raises an error if a word of it was not read."""
    tests, words, columns = _parsed(title, rows, condition)
    _check(title, rows, words, (*read, *columns))
    return tests


def _parsed(title: str, rows: Sequence[Row], condition: str) -> tuple[list[Test], str, list[str]]:
    """Return the tests of a condition, the words that were not read, and the columns of its times."""
    tests, text = _letters(rows, condition)
    more, text = limits(rows, text)
    tests += more
    timed, text, columns = sided_times(rows, text)
    words = f" {folded(text)} "
    for part in (gaps, _cells, _times, truths, presence):
        more, words = part(rows, words)
        tests += more
        timed += more if part is _times else []
    more, words = _parts(title, rows, words)
    return [*tests, *more, *timed], words, [*columns, *(date_columns(rows) if timed else ())]


def _either(title: str, rows: Sequence[Row], condition: str, tests: Sequence[Test]) -> list[Row]:
    """Return the rows of a condition with "or": between values of a column, or between two single tests.

    Raises:
        TableError: It joins other tests, which could be grouped in several ways.
    """
    try:
        parts = [_parsed(title, rows, part)[0] for part in re.split(r"\bor\b", condition, flags=re.IGNORECASE)]
    except ValueError:
        parts = []
    if sum(map(len, parts)) > len(tests):  # "in Graz or Linz" is one test
        return [row for row in rows if all(test(row) for test in tests)]
    if len(parts) != len(tests) or any(len(part) != 1 for part in parts):
        raise TableError("the condition joins several tests with 'or': filter the rows")
    return [row for row in rows if any(test(row) for test in tests)]


def _at_limit(match: re.Match[str]) -> str:
    return f"{'at least' if match['more'] else 'at most'} {match['number']}"


def _letters(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Find cells that are like small words or single letters but for their capitals: "group A", "in IT".

    Raises:
        TableError: A last word without capitals is such a cell, or several columns have the cell.
        ValueError: No cell is such a letter.
    """
    wanted: dict[str, set[str]] = {}
    for match in _CAPITALS.finditer(condition):
        cell = folded(match[0])
        if len(cell) > 1 and cell not in SMALL:
            continue
        names = {name: {cell} for name in rows[0] if any(folded(row.get(name)) == cell for row in rows)}
        if names:
            wanted.setdefault(_column_of_cell(cell, names, f" {folded(condition)} "), set()).add(cell)
        elif (len(cell) > 1 and not condition.isupper()) or (len(cell) == 1 and match[0].isupper() and cell != "i"):
            raise ValueError(f"{match[0]!r} is not a cell of the table")
    last = folded(condition).split()[-1:]
    if not wanted and any(
        word in SMALL and any(folded(v) == word for row in rows for v in row.values()) for word in last
    ):
        raise TableError(f"{last[0]!r} is a cell and a common word: write it as in the table")
    if not wanted:
        return [], condition
    text = _CAPITALS.sub(
        lambda match: " " if any(folded(match[0]) in cells for cells in wanted.values()) else match[0], condition
    )
    for name in wanted:
        text = _without_label(text, name)
    return [_is_one(name, values) for name, values in wanted.items()], text


def _check(title: str, rows: Sequence[Row], words: str, read: Sequence[str]) -> None:
    """Raise an error if a word of the condition was not read."""
    known = known_words(title, rows)
    if " per " in words:
        raise TableError("the condition asks for a value of each group ('per'): compute it with by=")
    negative = next((word for word in words.split() if word in NEGATIVE), "")
    others = [word for word in words.split() if word not in PLAIN | NEGATIVE]
    for place, word in enumerate(others):
        if not _is_known(word, place, known):
            raise ValueError(f"{word!r} is neither a cell nor a column of the table: take its words from the rows")
    used = {word for text in (title, *read) for word in folded(text).split()}
    unread = next((word for word in _PREDICATES.findall(words) if not alike_any(word, used)), "")
    if unread and (name := column_by_word(rows, unread)) and not any(is_number(row.get(name)) for row in rows):
        raise TableError(f"the condition names the column {name!r}, and not which of its cells")
    for word in others[1:]:
        name = column_by_word(rows, word) if word not in _PREPOSITIONS else ""
        if name and not alike_any(word, used) and any(is_number(row.get(name)) for row in rows) and read:
            raise TableError(f"the condition names the numbers of the column {name!r} without a limit")
        if name and not alike_any(word, used) and _tells_rows_apart(rows, name):
            raise TableError(f"the condition names the column {name!r}, and not which of its cells")
    if negative:
        raise TableError(f"the condition excludes something ({negative!r}), which is not computed: filter the rows")


def _tells_rows_apart(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column's name is a condition itself, since it has missing cells, or yes and no."""
    return is_truth(rows, name) or any(is_missing(row.get(name)) for row in rows)


def is_foreign(title: str, rows: Sequence[Row], condition: str) -> bool:
    """Return whether a condition has a word that means nothing in a table, whatever else is wrong with it.

    Args:
        title: Name of the table.
        rows: Rows of the table.
        condition: Condition in words.
    """
    known = known_words(title, rows)
    cells = {word for row in rows for value in row.values() for word in folded(value).split()}
    words = [word for word in folded(condition).split() if word not in PLAIN | NEGATIVE | _LIMITING]
    return any(
        not any(map(str.isdigit, word))
        and not is_unit(word)
        and not alike_any(word, cells)
        and not _is_known(word, place, known)
        for place, word in enumerate(words)
    )


def _is_known(word: str, place: int, known: set[str]) -> bool:
    return alike_any(word, known) or (place == 0 and is_kind(word, known)) or _is_of_agent(word, known)


def _is_of_agent(word: str, known: set[str]) -> bool:
    """Return whether a verb is about a column, as "taught" about "Teacher" and "led" about "Lead"."""
    base = IRREGULAR.get(word, word.removesuffix("ed"))
    return len(base) > 3 and any(other.startswith(base) and len(other) <= len(base) + 2 for other in known)


def _times(rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    tests, text = plain_times(rows, words)
    return tests, f" {' '.join(text.split())} "


def _parts(title: str, rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    """Find words that are part of short cells of one column, as "Corvex" of "Corvex GmbH"."""
    known = known_words(title, rows)
    tests: list[Test] = []
    for word in [word for word in words.split() if word not in PLAIN | NEGATIVE and len(word) > 2]:
        if alike_any(word, known):
            continue
        names = {
            name
            for row in rows
            for name, value in row.items()
            if isinstance(value, str) and word in (parts := folded(value).split()) and len(parts) <= _SHORT_CELL
        }
        if len(names) == 1:
            denied = re.search(rf" {_DENIED} {re.escape(word)}(?= )", words)
            tests.append(_holds(names.pop(), word, is_wanted=denied is None))
            words = words.replace(denied[0] if denied else f" {word}", " ", 1)
    return tests, words


def _holds(name: str, word: str, *, is_wanted: bool) -> Test:
    return lambda row: (word in folded(row.get(name, "")).split()) == is_wanted


def _cells(rows: Sequence[Row], words: str) -> tuple[list[Test], str]:
    """Find cells in the condition, longest first; several cells of one column are alternatives."""
    forms = _forms(rows)
    wanted: dict[str, set[str]] = {}
    denied: dict[str, set[str]] = {}
    text = words
    present = [form for form in forms if f" {form} " in words]
    for form in sorted(present, key=lambda form: (-len(form), form)):
        end = " $" if form in NEGATIVE else " "  # "no" is a cell in "repaid: no", and not in "no interest"
        while match := re.search(rf"(?P<denied> {_DENIED})? {re.escape(form)}(?={end})", text):
            name = _column_of_cell(form, forms[form], words)
            (denied if match["denied"] else wanted).setdefault(name, set()).update(forms[form][name])
            before = text[: match.start()].rsplit(" ", 1)  # "room 12"
            is_label = len(before) > 1 and any(alike(before[1], part) for part in folded(name).split())
            text = f"{before[0] if is_label else text[: match.start()]}  {text[match.end() :]}"
    for name in wanted.keys() | denied.keys():  # "the Gold plan", "whose plan is Gold"
        text = _without_label(text, name)
    if set(wanted) & set(denied) or (denied and " or " in words):
        raise TableError("the condition excludes one of several values: filter the rows")
    if " or " in words and len(wanted) > 1 and all(len(values) == 1 for values in wanted.values()):
        raise TableError("the condition joins two columns with 'or': filter the rows")
    tests = [_is_one(name, values) for name, values in wanted.items()]
    return [*tests, *(_is_none(name, values) for name, values in denied.items())], text


def _without_label(text: str, name: str) -> str:
    labels = folded(name).split()
    first = next((word for word in text.split() if folded(word) not in PLAIN), "")
    return " ".join(
        word
        for word in text.split(" ")
        if word == first or folded(word) in PLAIN or not alike_any(folded(word), labels)
    )


def _forms(rows: Sequence[Row]) -> dict[str, dict[str, set[str]]]:
    """Return the forms of cells that may stand in a condition: by form, the cells by column."""
    forms: dict[str, dict[str, set[str]]] = {}
    titles = {word for name in rows[0] for word in folded(name).split()}
    for row in rows:
        for name, value in row.items():
            cell = folded(value) if isinstance(value, str) or (is_number(value) and value >= 0) else ""
            if not cell or (len(cell) == 1 and not cell.isdigit()) or cell in SMALL:
                continue
            spellings = {cell, *(_plurals(cell) if isinstance(value, str) and cell not in titles else ())}
            for form in spellings - SMALL:
                forms.setdefault(form, {}).setdefault(name, set()).add(cell)
    return forms


def _plurals(cell: str) -> set[str]:
    """Return the plural of a cell's last word: "oaks" for "oak", "batteries" for "battery"."""
    if not cell[-1].isalpha() or cell.endswith("s") or len(cell) < 3:
        return set()
    if cell.endswith(("ch", "sh", "x", "z")):
        return {f"{cell}es"}
    return {cell[:-1] + "ies" if cell.endswith("y") and cell[-2:-1] not in "aeiou" else f"{cell}s"}


def _column_of_cell(form: str, names: dict[str, set[str]], words: str) -> str:
    """Return the column of a cell in a condition: the only one, or the one whose name stands beside it.

    Raises:
        TableError: Several columns have the cell.
    """
    if len(names) == 1:
        return next(iter(names))
    near = " ".join(words.replace(f" {form} ", " \0 ").split("\0")[0].split()[-3:])
    after = " ".join(words.replace(f" {form} ", " \0 ").split("\0")[-1].split()[:1])
    beside = f"{near} {after}".split()
    named = [name for name in names if any(alike(word, part) for word in beside for part in folded(name).split())]
    if len(named) != 1:
        raise TableError(f"{form!r} is a cell of several columns ({', '.join(names)}): name the column")
    return named[0]


def _is_one(name: str, values: set[str]) -> Test:
    return lambda row: folded(row.get(name, "")) in values


def _is_none(name: str, values: set[str]) -> Test:
    return lambda row: not is_missing(row.get(name)) and folded(row.get(name, "")) not in values
