"""Cells of spreadsheets in the form that the sheet shows: percentages, currencies, decimals, dates, times, durations.

A date of day, month and year in figures is written in ISO format, since the order of its figures depends on the
reader's country. A negative number has a minus sign, even if its cell shows brackets or a colour instead. A format that
is not plain (with conditions, exponents, eras or month names of another language) gives no form. Signs for decimals and
thousands are English, as in the formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "m/d/yyyy", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "m/d/yyyy h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)", 41: "#,##0", 43: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
    48: "##0.0E+0",
}  # fmt: skip
"""Formats that a workbook may use by number without a definition. Those of currencies depend on the country."""

_TOKENS = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|[_*](?P<filler>.)|\[\$(?P<currency>[^\]-]*+)(?:-(?P<locale>[0-9A-Fa-f,]*+))?[^\]]*+\]'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[(?P<bracket>[^\]]*)\]|(?P<half>AM/PM|A/P)|(?P<date>y+|m+|d+|h+|s+)"
    r"|(?P<fraction>\.0+(?=[^0-9#?]*$))|(?P<exponent>E[+-])|(?P<place>[0#?])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_COLOUR = re.compile(r"black|blue|cyan|green|magenta|red|white|yellow|colou?r ?\d+", re.IGNORECASE)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ENGLISH = 9  # the last ten bits of a locale
_MAX_FORMAT = 255  # characters of a format, the limit of spreadsheet programs
_MAX_NUMBER = 1e15  # larger numbers have no exact digits
_MAX_DAY = 2_958_466  # 1 January 10000


class _FormatToken(NamedTuple):
    kind: str
    text: str


class _FormatSection(NamedTuple):
    """Tokens of one part of a format, and whether it formats dates."""

    tokens: tuple[_FormatToken, ...]
    is_date: bool


def shown(value: float, code: str, *, since_1904: bool = False) -> str | None:
    """Return a number as its cell shows it; None if the format is general or not plain.

    Args:
        value: The number.
        code: The number format, such as `0.0%`.
        since_1904: True if days are counted from 1904.
    """
    sections = _sections(code) if len(code) <= _MAX_FORMAT else ()
    if not sections or not abs(value) < _MAX_NUMBER:
        return None
    has_own_sign = value < 0 and len(sections) > 1
    section = sections[1] if has_own_sign else sections[2] if value == 0 and len(sections) > 2 else sections[0]
    if section.is_date:
        return _date(value, section.tokens, since_1904)
    try:
        text = _number(Decimal(repr(abs(value))), section.tokens)
    except InvalidOperation:  # more digits than a number has
        return None
    if not text or value >= 0 or "-" in text or not re.search("[1-9]", text):
        return text
    return f"-{re.sub('[()]', '', text)}"  # also for a sign that is a colour or brackets


@lru_cache(1024)
def _sections(code: str) -> tuple[_FormatSection, ...]:
    """Return the sections of a format; empty if it is general or not plain."""
    sections: list[list[_FormatToken]] = [[]]
    is_english = True
    for match in _TOKENS.finditer(code):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "locale":
            kind, text = "currency", match["currency"]
            is_english = is_english and _is_english(match["locale"])
        if kind == "other" and text == ";":
            sections.append([])
        elif kind == "bracket":
            if not _COLOUR.fullmatch(text):
                return ()
        elif kind in ("quoted", "escaped", "currency") or (kind == "filler" and match[0][0] == "_"):
            sections[-1].append(_FormatToken("literal", " " if kind == "filler" else text))
        elif kind == "other" and ((text.isalpha() and text.isascii()) or text == "@"):
            if len(sections) < 4:  # the fourth is for texts
                return ()  # `General`, eras
        elif kind != "filler":
            sections[-1].append(_FormatToken(kind, text))
    parts = tuple(_section(tokens) for tokens in sections[:3])
    has_names = any(token.kind == "date" and _is_name(token.text) for part in parts for token in part.tokens)
    return () if not any(parts[0].tokens) or (has_names and not is_english) else parts


def _is_english(locale: str) -> bool:
    digits = locale.partition(",")[0][-4:]
    return not digits or int(digits, 16) & 0x3FF in (0, _ENGLISH)


def _is_name(text: str) -> bool:
    return len(text) > 2 and text[0].lower() in "md"


def _section(tokens: Sequence[_FormatToken]) -> _FormatSection:
    if not any(token.kind in ("date", "elapsed", "half") for token in tokens):
        plain = [_FormatToken("place", "#") if token.text == "?" else token for token in tokens]
        return _FormatSection(tuple(plain), is_date=False)
    return _FormatSection(tuple(_with_minutes(tokens)), is_date=True)


def _with_minutes(tokens: Sequence[_FormatToken]) -> Iterator[_FormatToken]:
    """Yield tokens in which the letters of dates and times are small, except for months: `M`."""
    before = ""
    for place, token in enumerate(tokens):
        if token.kind not in ("date", "elapsed"):
            yield token
            continue
        letters = token.text.lower()
        after = next((other.text[0].lower() for other in tokens[place + 1 :] if other.kind == "date"), "")
        is_minute = letters[0] == "m" and len(letters) < 3 and (before == "h" or after == "s")
        before = letters[0]
        if token.kind == "date" and before == "m" and not is_minute:
            letters = letters.upper()
        yield _FormatToken(token.kind, letters)


def _number(value: Decimal, tokens: tuple[_FormatToken, ...]) -> str | None:
    before, core, after, factor = _digits(tokens)
    figures = _figures(value * factor, core) if core else ""
    return None if figures is None else f"{before}{figures}{after}".strip() or None


@lru_cache(1024)
def _digits(tokens: tuple[_FormatToken, ...]) -> tuple[str, tuple[_FormatToken, ...], str, Decimal]:
    """Return what stands before the digits, the tokens of the digits, what stands after them, and a factor."""
    places = [place for place, token in enumerate(tokens) if token.kind in ("place", "fraction")]
    first, end = (places[0], places[-1] + 1) if places else (0, 0)
    commas = end
    while (
        commas < len(tokens) and places and tokens[commas] == _FormatToken("other", ",")
    ):  # each divides by a thousand
        commas += 1
    factor = Decimal(100) ** sum(token == _FormatToken("other", "%") for token in tokens)
    before, after = ("".join(token.text for token in part) for part in (tokens[:first], tokens[commas:]))
    return before, tokens[first:end], after, factor / 1000 ** (commas - end)


def _figures(value: Decimal, core: Sequence[_FormatToken]) -> str | None:
    pattern = "".join(token.text for token in core)
    if "/" in pattern:
        return _mixed(value, pattern)
    if any(token.kind == "exponent" for token in core):
        return None
    if any(token.kind == "literal" or (token.kind == "other" and token.text not in ",.") for token in core):
        return _spread(value, core)
    whole, _, decimals = pattern.partition(".")
    optional = len(decimals) - len(decimals.rstrip("#"))
    text = f"{_rounded(value, len(decimals)):{',' if ',' in whole else ''}f}"
    for _ in range(optional):
        text = text[:-1] if text.endswith("0") else text
    left, point, right = text.partition(".")
    needed = whole.count("0")
    if not needed and left == "0":
        left = ""
    left = left.zfill(needed) if "," not in left else left
    return f"{left}{point if right else ''}{right}"


def _rounded(value: Decimal, decimals: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _mixed(value: Decimal, pattern: str) -> str | None:
    """Return a number as a whole and a fraction; None if the format names the denominator."""
    above, _, below = pattern.rpartition("/")
    digits = len(below.strip())
    if not digits or set(below.strip()) - set("0#") or digits > 4:
        return None
    has_whole = " " in above.strip()
    whole = int(value) if has_whole else 0
    fraction = Fraction(value - whole).limit_denominator(10**digits - 1)
    if fraction == 1 or not fraction:
        return str(whole + int(fraction))
    return f"{whole} {fraction}" if whole else str(fraction)


def _spread(value: Decimal, core: Sequence[_FormatToken]) -> str | None:
    """Return a whole number whose digits stand between other signs, such as a telephone number."""
    if any(token.text in ".,/" for token in core if token.kind == "other"):
        return None
    digits = list(str(_rounded(value, 0)))
    pieces: list[str] = []
    remaining = sum(token.kind == "place" for token in core)
    for token in reversed(core):
        if token.kind != "place":
            pieces.append(token.text)
            continue
        remaining -= 1
        pieces.append("".join(digits) if not remaining else digits.pop() if digits else "0")
        digits = [] if not remaining else digits
    return "".join(reversed([piece or "0" for piece in pieces]))


def _date(value: float, tokens: Sequence[_FormatToken], since_1904: bool) -> str | None:
    if not 0 <= value < _MAX_DAY:
        return None
    if any(token.kind == "elapsed" for token in tokens):
        return _elapsed(value, tokens)
    start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 31 if value < 60 else 30)
    try:
        moment = start + timedelta(seconds=round(value * 86_400, _precision(tokens)))
    except OverflowError:  # after the year 9999
        return None
    pieces = [_piece(token, moment, tokens) for token in tokens]
    dates = [token.text for token in tokens if token.kind == "date" and token.text[0] in "yMd"]
    if {unit[0] for unit in dates} != {"y", "M", "d"} or any(len(unit) > 2 for unit in dates if unit[0] == "M"):
        return "".join(pieces).strip()
    times = (place for place, token in enumerate(tokens) if token.kind == "date" and token.text[0] in "hms")
    clock = "".join(pieces[next(times, len(pieces)) :])
    return f"{moment.date().isoformat()} {clock}".strip()


def _precision(tokens: Sequence[_FormatToken]) -> int:
    """Return the decimals of seconds in a format, at most 3."""
    return min(max((len(token.text) - 1 for token in tokens if token.kind == "fraction"), default=0), 3)


def _piece(token: _FormatToken, moment: datetime, tokens: Sequence[_FormatToken]) -> str:
    """Return a moment as one token of a format shows it."""
    if token.kind == "half":
        return "AM" if moment.hour < 12 else "PM"
    if token.kind == "fraction":
        return f"{moment.microsecond / 1e6:.{min(len(token.text) - 1, 3)}f}"[1:]
    if token.kind != "date":
        return token.text
    unit, size = token.text[0], len(token.text)
    if unit == "y":
        return f"{moment.year % 100:02}" if size < 3 else str(moment.year)
    if unit in "Md" and size > 2:
        name = MONTHS[moment.month - 1] if unit == "M" else DAYS[moment.weekday()]
        return name[:3] if size == 3 else name[0] if token.text == "MMMMM" else name
    hour = (moment.hour - 1) % 12 + 1 if any(other.kind == "half" for other in tokens) else moment.hour
    number = {"M": moment.month, "d": moment.day, "h": hour, "m": moment.minute, "s": moment.second}[unit]
    return f"{number:0{min(size, 2)}}"


def _elapsed(value: float, tokens: Sequence[_FormatToken]) -> str | None:
    """Return a duration, whose first unit may exceed a day; None if the format also has days or years."""
    precision = _precision(tokens)
    rest = round(value * 86_400, precision)
    pieces: list[str] = []
    for token in tokens:
        if token.kind in ("elapsed", "date"):
            size = {"h": 3600, "m": 60, "s": 1}.get(token.text[0].lower())
            if size is None:
                return None
            count, rest = divmod(rest, size)
            pieces.append(f"{int(count):0{min(len(token.text), 2)}}")
        elif token.kind == "fraction":
            pieces.append(f"{rest:.{precision}f}"[1:])
        else:
            pieces.append(token.text)
    return "".join(pieces).strip()
