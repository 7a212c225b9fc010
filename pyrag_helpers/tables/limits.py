"""Limits of numbers in conditions on tables: "more than 50 cows", "older than 40", "between 5 and 10 kg"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from pyrag_helpers.numbers import parse_number
from pyrag_helpers.tables.clocks import EITHER, duration_form, minutes_in, read_duration
from pyrag_helpers.tables.numbers import (
    Column,
    conversion,
    has_numbers,
    is_label,
    is_unit,
    plain_number,
    price_column,
    unit_of,
)
from pyrag_helpers.tables.vocabulary import COMPARATIVES, COMPARED, CURRENCIES, MONEY
from pyrag_helpers.tables.words import (
    Row,
    TableError,
    alike,
    column_by_word,
    folded,
    only_numbers,
    related,
)

Test = Callable[[Row], bool]

_ABOVE = (
    r"more than|over|above|greater than|higher than|exceeding|exceeds?|at least|no less than|not less than|minimum of"
)
_BELOW = r"fewer than|less than|under|below|lower than|at most|no more than|not more than|up to|maximum of"
_COMPARED = "|".join(COMPARATIVES)
_MONEY_BEFORE = r"(?:[$€£]\s?|(?:EUR|USD|GBP|CHF)\s)?"
_DURATION = r"\d+:\d\d(?::\d\d)?|\d+ ?h(?:ours?|rs?)?(?: and)? ?\d+(?: ?min(?:ute)?s?\b)?"
_IN_WORDS = (
    r"half an?(?= hour\b)|an?(?= (?:hour|minute|day)\b)"
    r"|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
)
_NUMBER = (
    rf"{_MONEY_BEFORE}(?P<number>{_DURATION}|[-−]?\d[\d.,]*\d|[-−]?\d|{_IN_WORDS})"
    r"(?P<scale> ?(?:million|thousand|k|m)\b)?"
)
_LIMIT = re.compile(
    rf"\b(?P<sign>{_ABOVE}|{_BELOW}|(?:{_COMPARED}) than|exactly|equal to)\s+{_NUMBER}(?P<sign_after>\s?[%€$£])?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"\bbetween {_MONEY_BEFORE}(?P<low>[-−]?\d[\d.,]*\d|[-−]?\d) and {_MONEY_BEFORE}(?P<high>\d[\d.,]*\d|\d)\b"
    r"(?P<sign_after>\s?[%€$£])?",
    re.IGNORECASE,
)
_SIDE = re.compile(
    r"\b(?:with |have |has |had )?(?:an? )?(?P<side>negative|positive) (?P<word>[^\W\d_]+)"
    r"|\b(?:is|are|was|were) (?P<side_2>negative|positive)(?: in (?P<word_2>\S+))",
    re.IGNORECASE,
)
_ARTICLES = {"half an": "0.5", "half a": "0.5", "an": "1", "a": "1"}
_GOVERNED = re.compile(r"\b(?:with|has|have|had) an? (\w+)(?: of)? $|(\w+) of $")
_GOVERNING = frozenset(
    """win wins won score scored scores take takes took taken use uses used need needs needed seat seats employ employs
    carry carries contain contains get gets got receive receives received produce produces produced grow grew reach
    reached last lasted lasts measure measures spent spend worked made""".split()  # noqa: SIM905
)
"""Verbs before a limit, as in "won at least 5 games", which say nothing more than the limit's column."""


def limits(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for the limits of numbers in a condition, and the remaining words.

    Args:
        rows: Rows of the table.
        condition: Condition in words.

    Raises:
        TableError: The limit is in a unit that its column does not have.
    """
    tests, condition = _sides(rows, condition)
    while match := _BETWEEN.search(condition):
        if _years(match["low"], match["high"]):
            break
        name = _nearby(rows, condition, match)
        low, high = (_number(rows, name, condition, match, match[end]) for end in ("low", "high"))
        tests += [_compared(rows, name, "at least", low), _compared(rows, name, "at most", high)]
        condition = _without(rows, condition, match, name)
    while match := _LIMIT.search(condition):
        sign = match["sign"].lower().removesuffix(" than")
        column, direction = COMPARATIVES.get(sign, ("", ""))
        name = _nearby(rows, condition, match, column)
        limit = _number(rows, name, condition, match, match["number"] + (match["scale"] or ""))
        tests.append(_compared(rows, name, direction or match["sign"].lower(), limit))
        condition = _without(rows, condition, match, name)
    return tests, condition


def _sides(rows: Sequence[Row], condition: str) -> tuple[list[Test], str]:
    """Return tests for "a negative balance" and "are negative in 2024"."""
    tests: list[Test] = []
    for match in list(_SIDE.finditer(condition)):
        name = column_by_word(rows, match["word"] or match["word_2"])
        if name and has_numbers(rows, name):
            is_negative = (match["side"] or match["side_2"]).lower() == "negative"
            tests.append(_compared(rows, name, "<" if is_negative else ">", Decimal(0)))
            condition = condition.replace(match[0], " ", 1)
    return tests, condition


def _number(rows: Sequence[Row], name: str, condition: str, match: re.Match[str], text: str) -> Decimal:
    """Return a limit as a number of its column, converted from the unit in the condition."""
    unit, own, form = _unit_after(condition, match), unit_of(rows, name), duration_form(rows, name)
    if ":" in text:
        if not form:
            raise TableError(f"the limit {text} is a time, and the column {name!r} has no durations")
        return read_duration(text, form)
    if own == EITHER:
        raise TableError(f"the column {name!r} has hours and minutes, or minutes and seconds, and does not tell which")
    minutes = minutes_in(text) if "h" in text.lower() else None
    text = _ARTICLES.get(text.lower(), text)
    number, unit = (Decimal(str(parse_number(text))), unit) if minutes is None else (minutes, "min")
    if form and not unit:
        raise TableError(f"the limit {text} has no unit, and the column {name!r} has durations: add hours or minutes")
    if own == "%" and not unit and 0 < abs(number) < 1:
        raise TableError(f"{text} may be {text}% or {plain_number(100 * number)}%: write it with %")
    if not unit or own in CURRENCIES.get(unit.lower(), ()):
        return number
    factor = conversion(unit, own)
    if factor is None:
        raise TableError(f"the condition is in {unit!r}, and the column {name!r} is not")
    return number * factor


def _unit_after(condition: str, match: re.Match[str]) -> str:
    """Return the unit after a limit, such as "%" or "kg"; empty without a unit."""
    if match["sign_after"]:
        return match["sign_after"].strip()
    words = condition[match.end() :].split()
    if [word.lower() for word in words[:2]] == ["per", "cent"]:
        return "%"
    word = words[0].strip(",") if words else ""
    return word if word and is_unit(word) else ""


def _years(*texts: str) -> bool:
    return all(re.fullmatch(r"(?:19|20)\d\d", text) for text in texts)


def _nearby(rows: Sequence[Row], condition: str, match: re.Match[str], kind: str = "") -> str:
    """Return the column that the words around a limit mean; the only column of numbers if they mean none."""
    unit = _unit_after(condition, match)
    if kind:
        is_time = kind in ("long", "short") and unit and conversion(unit, "min") is not None
        names = [column_by_word(rows, word) or related(rows, word) for word in (["duration"] * bool(is_time) + [kind])]
        name = next(filter(None, names), price_column(rows) if kind == "price" else "")
        if not name:
            raise ValueError(f"no column of the table matches the limit of {kind}")
        return name
    text = _GOVERNED.search(condition[: match.start()])
    if text and (name := column_by_word(rows, text[1] or text[2])):
        if not has_numbers(rows, name):
            raise TableError(f"the column {name!r} has no numbers that can be compared")
        return name
    after, before = condition[match.end() :].split()[:2], condition[: match.start()].split()[-4:]
    for word in (*after, *reversed(before)):
        name = column_by_word(rows, word) or related(rows, folded(word))
        if name and not is_label(rows, name, word) and has_numbers(rows, name):
            return name
    own = [name for name in rows[0] if unit and unit_of(rows, name) and conversion(unit, unit_of(rows, name))]
    return own[0] if len(own) == 1 else only_numbers(rows)


def _without(rows: Sequence[Row], condition: str, match: re.Match[str], name: str) -> str:
    """Return a condition without a limit and the words around it that name its column, its unit or money."""
    before, after = condition[: match.start()].split(), condition[match.end() :].split()
    kept_before = [
        word for word in before[-4:] if not (related(rows, folded(word)) == name or _names(rows, word, name))
    ]
    while kept_before and kept_before[-1].lower() in _GOVERNING:
        kept_before.pop()
    if after[:2] == ["per", "cent"]:
        after = after[2:]
    elif after and not match["sign_after"] and _unit_after(condition, match):
        after = after[1:]
    if len(words := folded(name).split()) > 1 and folded(" ".join(after[: len(words)])) == " ".join(words):
        after = after[len(words) :]
    kept_after = [word for word in after[:2] if folded(word) not in MONEY and not _names(rows, word, name)]
    return " ".join((*before[:-4], *kept_before, *kept_after, *after[2:]))


def _names(rows: Sequence[Row], word: str, name: str) -> bool:
    return column_by_word(rows, word) == name and not alike(folded(word), "order")


def _compared(rows: Sequence[Row], name: str, sign: str, limit: Decimal) -> Test:
    numbers = {id(row): number for row, number in Column(rows, name).numbers(rows)}
    return lambda row: (number := numbers.get(id(row))) is not None and COMPARED[sign](number, limit)
