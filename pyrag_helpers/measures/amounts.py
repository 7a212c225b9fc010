"""Amounts in texts, which are numbers with units: "1.18 trillion", "12’400 CHF", "three dozen", "6 ft 2 in".

A number is read as a whole or not at all: anything that continues it (a range, a fraction, a scale, another unit) is
read with it or raises `ValueError`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag_helpers.measures.money import currency_before
from pyrag_helpers.measures.units import NO_UNIT, Unit, read_unit
from pyrag_helpers.number_words import find_spelled, read_scale
from pyrag_helpers.numerals import NUMERAL, decimal_mark, is_open_point, mark_of_text, plain_digits, read_numeral

_NUMERAL = re.compile(NUMERAL)
_REMARK = re.compile(r"\[(?:\d{1,3}|[a-z]|citation needed)\]")  # Wikipedia's remarks after numbers
_IDENTIFIER = re.compile(r"(?:[^\W\d_]|[^\W\d_][-‑_])$")  # A380, COVID-19
_MINUS = re.compile(
    r"(?:(?:^|(?<=[\s(:=≈~]))[-−‑–]|\b(?:minus|negative|moins|menos|meno|минус)\s+|マイナス|[负負零]下?)$",
    re.IGNORECASE,
)
_SIGN_BEFORE_MONEY = re.compile(r"(?:^|(?<=[\s(]))[-−–]$")
_BELOW = re.compile(
    r"\s*(?:below (?:zero|sea level)|under (?:zero|sea level)|unter (?:null|dem meeresspiegel)|sous zéro|bajo cero"
    r"|sotto zero|abaixo de zero|onder nul|ниже нуля)\b",
    re.IGNORECASE,
)
_EXPONENT = re.compile(
    r"[eE](?P<plain>[-+−]?\d{1,3})(?![\w.])|\s*[×x·*⋅]\s*10(?P<power>(?:\^|\*\*)[-−]?\d{1,3}|⁻?[⁰¹²³⁴-⁹]+)(?![\w.])"
)
_SUPERSCRIPT = re.compile(r"(?:\^(?P<digits>[-−]?\d{1,3})|(?P<raised>⁻?[⁰¹²³⁴-⁹]+))")
_FRACTION = re.compile(
    r"(?:(?P<gap>\s|-|\s?\+\s?)?(?P<top>\d{1,3})[/⁄](?P<bottom>\d{1,3})|\s?(?P<sign>[¼-¾⅐-⅞]))(?![\d/])"
)
_SIMPLE = re.compile(r"[/⁄](?P<bottom>2|3|4|5|6|8|10|16|32|64|100)(?![\d/.,])")
_AND_PART = re.compile(r"\s+and\s+(?:a\s+(?P<part>half|quarter|third)|(?P<three>three\s+quarters))\b", re.IGNORECASE)
_PARTS = {"half": 0.5, "quarter": 0.25, "third": 1 / 3}
_TO = r"(?:[-–—~〜～‑]|(?:to|through|bis|till|à|até|tot|до|and|or|und|oder|et|ou|o|y|e|en|of|и|или)(?=\s)|至|到|から)"
_NUMBER_WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred"
_NUMBER_NEXT = rf"\s*[-+−]?(?:[$€£¥₹]\s?)?(?:\d|(?:a\s)?(?:{_NUMBER_WORDS})\b)"
_RANGE = re.compile(rf"\s*{_TO}{_NUMBER_NEXT}", re.IGNORECASE)
_OTHER = re.compile(
    rf"\s*(?:[×x*±÷:/;·]|\+/[-−]|by\s|\+|\sout\sof\s(?:every\s)?){_NUMBER_NEXT}|[.,'’]{{1,15}}\d|\s+\d"
    r"|\s+in\s+(?:every\s)?(?:\d{1,3}(?![\d,])|(?:two|three|four|five|six|seven|eight|nine|ten|twenty|a hundred)\b)"
    r"|\s?[.,]\s?0\d\d(?!\d)|\s[.,]\s?\d|\s*[ap]\.\s?m\b|\s?[-−–]\s*$",
    re.IGNORECASE,
)
_LISTED = re.compile(rf"\s*,\s*(?:and\s)?{NUMERAL}\s*(?P<unit>[^\W\d_]{{1,12}}\.?)?\s*(?:$|[,;]|and\b)")
_SPLIT = re.compile(r"\d{1,3}\s?,\s\d{3}(?![\d,])(?!\s\d)")
_MORE_UNITS = re.compile(
    r"\s?(?:(?!(?:on|in|at|of|by|to|for|and|or|with|from)\b)[^\W\d_]{1,5}\.?\s(?:and\s)?\d+|[€$£]?\d+)\s?(?:[^\W\d_]{1,8}\.?)?\s*"
)
_UNSURE_SIGN = re.compile(r"(?:[<>≤≥±]=?\s?|[-+−–]\s?[-+−–]|^[-−]\s|(?:^|[\s(])[-+−]?,)$")  # "< 5", "--5", "- 5", ",5"
_BRACKETED = re.compile(rf"\s*\(\s*[^\W\d_]{{0,3}}[$€£¥]?\s?{NUMERAL}\s?(?:[$€£¥%]|[A-Z]{{3}})?\s*\)\s*")
_ATTACHED = re.compile(r"[^\W\d_]+")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|s|er|ère|e|ème|º|ª|й|го|я|ое|x)(?![^\W_])", re.IGNORECASE)
_ROUND = re.compile(r"\s*(?:\+|plus\b)?")
_INCHES = re.compile(r"\s?['’′]\s?(?P<inches>\d{1,2}(?:\.\d+)?)\s?(?:\"|”|″|''|’’|in\b)?(?![\w'])")
_JOIN = re.compile(
    r"(?:(?<=ft|lb|hr|oz)\.|(?<=lbs|hrs|min)\.)?\s*(?:,\s*|and\s+|und\s+|et\s+|y\s+|e\s+)?(?=\d)|\s+(?:and\s+)?(?=[a-z])",
    re.IGNORECASE,
)
_MONTH_NAMES = (
    "(?i:january|february|april|june|july|august|september|october|november|december)|March|May|Jan|Feb|Mar|Apr|Jun|Jul"
    "|Aug|Sept?|Oct|Nov|Dec"
)
_DATE = re.compile(rf"(?:st|nd|rd|th|\.)?\s(?:of\s)?(?:{_MONTH_NAMES})\b\.?,?(?=\s*(?:\d{{3,4}}|$))")
_MONTH_BEFORE = re.compile(rf"\b(?:{_MONTH_NAMES})\.?\s$")
_FEET = Unit("length", 0.3048, name="ft")
_MIN = re.compile(r"\s?m(?![^\W_])")


@dataclass(frozen=True, slots=True)
class Amount:
    """Number with its unit and its position in the text.

    Attributes:
        value: The number, expressed in the unit.
        unit: The unit; `NO_UNIT` if it is unknown.
        start: Position of the first character.
        end: Position after the last character.
    """

    value: int | float
    unit: Unit
    start: int
    end: int


def in_base(amount: Amount) -> int | float:
    """Convert the value of an amount to the base unit of its kind."""
    unit = amount.unit
    if unit.factor == 1.0 and not unit.offset:
        return amount.value
    factor = int(unit.factor) if unit.factor.is_integer() else unit.factor
    return (amount.value + unit.offset) * factor if unit.offset else amount.value * factor


def read_amount(text: str, context: str | None = None) -> tuple[Amount, list[Amount]]:
    """Return the first amount in a text, and the smaller amounts that continue it ("6 ft" and "2 in").

    Args:
        text: The text.
        context: Text of the document that the amount is from, whose numbers show the decimal mark.

    Raises:
        ValueError: There is no number, or it cannot be read as a whole.
    """
    plain = _REMARK.sub(lambda match: " " * len(match[0]), plain_digits(str(text)))
    return _whole(plain, mark_of_text(plain) or (mark_of_text(plain_digits(context)) if context else ""))


_RANGE_BEFORE = re.compile(rf"{NUMERAL}\s?(?:[^\W\d_]{{1,10}}\s)?(?:[-–—]|to\s|or\s|and\s)\s?$")


def whole_amount(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of an amount, including its unit, smaller units and the other end of a range.

    Args:
        text: The text.
        start: Position of the first character that is known to belong to the amount.
        end: Position after the last such character.
    """
    before = _RANGE_BEFORE.search(text, max(0, start - 40), start)
    minus = _MINUS.search(text, max(0, start - 12), start)
    start = before.start() if before else minus.start() if minus else start
    try:
        amount, parts = read_amount(text[start : start + 80])
    except ValueError:
        return start, end
    return start, max(end, start + (parts[-1] if parts else amount).end)


def read_amounts(text: str) -> Iterator[tuple[Amount, list[Amount]]]:
    """Yield the amounts in a text that can be read as a whole, in order, each as returned by `read_amount`.

    Args:
        text: The text.
    """
    plain = plain_digits(text)
    mark = mark_of_text(plain)
    while True:
        try:
            amount, parts = _whole(plain, mark)
        except ValueError:
            numeral = _NUMERAL.search(plain)
            if numeral is None:
                return
            end = numeral.end()
        else:
            yield amount, parts
            end = (parts[-1] if parts else amount).end
        plain = plain[end:]


def _whole(plain: str, mark: str) -> tuple[Amount, list[Amount]]:
    amount = _first(plain, mark)
    parts = _parts(plain, amount, mark)
    last = parts[-1] if parts else amount
    _refuse(plain, last)
    if _DATE.match(plain, last.end) or (last.unit is NO_UNIT and _MONTH_BEFORE.search(plain, 0, amount.start)):
        raise ValueError(f"{_shown(plain)} is a date: read it with parse_date")
    return amount, parts


def _first(text: str, mark: str) -> Amount:
    numeral = next(_numerals(text), None)
    spelled = find_spelled(text, numeral.start() if numeral else None)
    if numeral and spelled is None:
        return _in_digits(text, numeral, mark)
    sign = next((match for match in re.finditer(r"[¼-¾⅐-⅞]", text)), None)
    if spelled is None and sign:
        scale, end = read_scale(text, sign.end())
        return _with_unit(text, _scaled(unicodedata.numeric(sign[0]), scale), sign.start(), end)
    if spelled is None:
        raise ValueError(f"no number in {_shown(text)}: ask for the number again, or test with is_known() first")
    return _with_unit(text, spelled.value, spelled.start, spelled.end)


def _shown(text: str) -> str:
    return repr(str(text) if len(text) <= 80 else f"{text[:80]}…")


def _numerals(text: str) -> Iterator[re.Match[str]]:
    """Yield the numerals of a text, except those inside names such as A380."""
    return (match for match in _NUMERAL.finditer(text) if not _is_name(text, match.start()))


def _is_name(text: str, at: int) -> bool:
    return (
        bool(_IDENTIFIER.search(text, max(0, at - 2), at))
        and not currency_before(text, at)[0]
        and not _CJK.match(text[at - 1])
    )


_CJK = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _in_digits(text: str, match: re.Match[str], mark: str) -> Amount:
    money, start = currency_before(text, match.start())
    end = match.end()
    if match[0].isdigit() and (simple := _SIMPLE.match(text, end)) and int(match[0]) < int(simple["bottom"]):
        return _with_unit(text, int(match[0]) / int(simple["bottom"]), start, simple.end())
    value, end = _fraction(text, end, match[0], mark)
    value, end = _power(text, end, value)
    scale, end = read_scale(text, end, money=bool(money))
    if "." in match[0] and scale > 1 and not mark and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", match[0]):
        mark = "."
    value = _scaled(value, scale)
    value, end = _more(text, end, value, scale, mark)
    part = _AND_PART.match(text, end)
    if part:
        value, end = value + (0.75 if part["three"] else _PARTS[part["part"].lower()]) * scale, part.end()
    amount = _with_unit(text, value, start, end, money)
    if is_open_point(match[0]) and scale == 1 and amount.unit is NO_UNIT and not _numerals_show(text, mark):
        raise ValueError(f"{match[0]!r} may count in thousands: ask for the number in words")  # 7.500 people
    return amount


def _numerals_show(text: str, mark: str) -> bool:
    """Return whether numerals confirm the decimal mark. This is not required for a point."""
    return mark != "." or decimal_mark(_NUMERAL.findall(text)) == "." or not re.search(r"[^\W\d_]", text)


def _fraction(text: str, at: int, numeral: str, mark: str) -> tuple[int | float, int]:
    """Return a number with the fraction that follows it: "3 1/2", "3½"."""
    match = _FRACTION.match(text, at) if numeral.isdigit() else None
    if match is None or not (match["sign"] or match["gap"]):
        return read_numeral(numeral, mark), at
    if match["sign"]:
        return int(numeral) + unicodedata.numeric(match["sign"]), match.end()
    top, bottom = int(match["top"]), int(match["bottom"])
    if not 0 < top < bottom:
        return read_numeral(numeral, mark), at
    return int(numeral) + top / bottom, match.end()


_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")


def _power(text: str, at: int, value: int | float) -> tuple[int | float, int]:
    match = _EXPONENT.match(text, at)
    if match:
        power = int((match["plain"] or match["power"]).lstrip("^*").translate(_RAISED))
    else:
        match = _SUPERSCRIPT.match(text, at)
        if match is None:
            return value, at
        if value != 10:
            raise ValueError(f"{_shown(text)} has a superscript after the number: ask for the number only")
        value, power = 1, int((match["digits"] or match["raised"]).translate(_RAISED))
    if abs(power) > 300:
        raise ValueError(f"the number in {_shown(text)} is too large: ask for it in another form")
    return _scaled(value, 10**power if power >= 0 else 10.0**power), match.end()


def _scaled(value: int | float, scale: int | float) -> int | float:
    if scale == 1:
        return value
    scaled = value * scale
    if not math.isfinite(scaled):
        raise ValueError("the number is too large: ask for it in another form")
    return round(scaled) if isinstance(scaled, float) and abs(scaled - round(scaled)) < 1e-3 and scale > 1 else scaled


def _more(text: str, at: int, value: int | float, scale: int, mark: str) -> tuple[int | float, int]:
    """Return a number with the smaller scales that follow it: "3 crore 20 lakh", "3万5千"."""
    match = re.compile(rf"\s*(?P<numeral>{NUMERAL})").match(text, at) if scale >= 100 else None
    if match is None:
        return value, at
    smaller = read_numeral(match["numeral"], mark)
    factor, end = read_scale(text, match.end())
    joined = match.start("numeral") == at
    if (factor > 1 or joined) and factor < scale and smaller * factor < scale:
        return _more(text, end, value + _scaled(smaller, factor), factor, mark)
    raise ValueError(f"{_shown(text)} holds two numbers in a row: ask for one")


def _with_unit(text: str, value: int | float, start: int, end: int, money: str = "") -> Amount:
    unit, after = (Unit(f"money {money}", name=money), end) if money else read_unit(text, end)
    if unit.name == "s" and re.match(r"s\b", text[end:]) and re.search(r"(?<!\d)\d{3}0$", text[start:end]):
        unit, after = NO_UNIT, end  # the 1960s
    if _INCHES.match(text, end):
        unit, after = _FEET, end
    below = _BELOW.match(text, after)
    degrees = re.compile(r"\s*(?:°|degrees?)(?=\s*below zero)", re.IGNORECASE).match(text, end)
    below = below or (_BELOW.match(text, degrees.end()) if degrees else None)
    negative = _MINUS.search(text, 0, start) or (money and _SIGN_BEFORE_MONEY.search(text, 0, start))
    signed = -value if negative or below else value
    return Amount(signed, unit, start, below.end() if below else after if unit is not NO_UNIT else end)


def _parts(text: str, amount: Amount, mark: str) -> list[Amount]:
    """Return the smaller units after an amount: "2 in" of "6 ft 2 in", "30 min" of "1 h 30 min"."""
    if amount.unit is _FEET and (inches := _INCHES.match(text, amount.end)):
        return [Amount(float(inches["inches"]), Unit("length", 0.0254, name="in"), inches.start(), inches.end())]
    parts: list[Amount] = []
    last = amount
    while last.unit is not NO_UNIT and last.unit.kind in ("length", "mass", "time", "volume"):
        smaller = _smaller(text, last, mark)
        if smaller is None:
            break
        parts.append(smaller)
        last = smaller
    return parts


def _smaller(text: str, last: Amount, mark: str) -> Amount | None:
    join = _JOIN.match(text, last.end)
    numeral = _NUMERAL.match(text, join.end()) if join else None
    if numeral:
        value, end = read_numeral(numeral[0], mark), numeral.end()
    else:
        spelled = find_spelled(text[join.end() : join.end() + 40]) if join and join.end() > last.end else None
        if join is None or spelled is None or spelled.start:
            return None
        value, end = spelled.value, join.end() + spelled.end
    unit, after = read_unit(text, end)
    if last.unit.name == "h" and (minutes := _MIN.match(text, end)):
        unit, after = Unit("time", 60.0, name="min"), minutes.end()
    if (
        unit is NO_UNIT
        and numeral
        and last.unit.name in ("ft", "h")
        and join
        and not text[join.start() : join.end()].strip()
    ):
        unit, after = Unit(last.unit.kind, {"ft": 0.0254, "h": 60.0}[last.unit.name], name="in or min"), end
    if unit.kind != last.unit.kind or unit.factor >= last.unit.factor:
        return None
    return Amount(value, unit, join.end() if join else end, after)


def _is_listed(text: str, amount: Amount) -> bool:
    """Return whether an amount starts a list of amounts in one unit, such as "5 kg, 6 kg"."""
    match = _LISTED.match(text, amount.end) if amount.start < 3 else None
    unit = match["unit"] or "" if match else ""
    own = text[amount.start : amount.end].rstrip()
    return match is not None and (own.endswith(unit) if unit else amount.unit is NO_UNIT)


def _refuse(text: str, amount: Amount) -> None:
    """Raise an error if the number continues after the part that was read."""
    end, start = amount.end, amount.start
    rest = text[end : end + 40]
    if _RANGE.match(rest) and not re.match(r"\s*(?:and|or|of|und|et|y|e|en|o|ou|и)\s", rest, re.IGNORECASE):
        raise ValueError(f"{_shown(text)} is a range: ask for one number, or for both ends")
    if _RANGE.match(rest) and (re.match(r"\s*(?:or|oder|ou|или)\s", rest, re.IGNORECASE) or amount.unit is NO_UNIT):
        raise ValueError(f"{_shown(text)} holds two numbers: ask for one number, or read each separately")
    if _UNSURE_SIGN.search(text, max(0, start - 4), start) or _BRACKETED.fullmatch(text):
        raise ValueError(f"{_shown(text)} has a sign that may change the number: ask for the number only")
    is_split = _SPLIT.match(text, start) and end - start <= 3  # "3, 000"
    cut = amount.unit is NO_UNIT or amount.unit.kind.startswith("money")
    if is_split or (cut and _MORE_UNITS.fullmatch(rest)) or _is_listed(text, amount):
        raise ValueError(f"{_shown(text)} holds two numbers: ask for one number, or read each separately")
    if _OTHER.match(rest):
        raise ValueError(f"{_shown(text)} is not a single number: ask for one number only")
    attached = _ATTACHED.match(text, end) if amount.unit is NO_UNIT else None
    if attached and text[end - 1].isdigit() and not _ORDINAL.match(text, end) and not _CJK.match(attached[0]):
        raise ValueError(f"{text[start : attached.end()]!r} is not a number: ask for the number only")
