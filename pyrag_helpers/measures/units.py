"""Units of measurement and currencies, with their kind of quantity and their factor to the base unit of the kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from pyrag_helpers.measures.money import read_currency
from pyrag_helpers.measures.unit_table import CASED_UNITS, OFFSETS, OWN_UNITS, UNITS

_SQUARE = r"(?:square|sq\.?|vierkante|kvadrat|кв\.?|квадратн\w+|平方)"
_CUBIC = r"(?:cubic|cu\.?|kubieke|куб\.?|кубическ\w+|立方)"
_SQUARED = r"(?:²|\^?2(?![\d.,])|squared\b|cuadrad[oa]s?\b|carrés?\b|quadrat[oi]\b|quadrad[oa]s?\b)"
_CUBED = r"(?:³|\^?3(?![\d.,])|cubed\b|c[úu]bic[oa]s?\b|cubes?\b|cubi\b)"
_PER = re.compile(r"/\s*|\s+(?:per|pro|par|por|al|an|a|в)\s+|\s*p/")
_INCH = r"(?=\s*(?:$|[).,;]|(?:long|wide|high|tall|deep|thick|by|x|in diameter)\b))"  # "in" is a preposition elsewhere
_END = r"(?:(?![^\W_])|(?=[²³23](?![^\W_])))"  # end of a unit, which may be followed by a power


_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of measurement, or currency.

    Attributes:
        kind: Kind of quantity; units of the same kind can be compared.
        factor: Size in the base unit of the kind.
        offset: Number that is added before the factor applies, for temperatures.
        spread: Share by which the size differs between countries and uses.
        name: Name in lower case, the same for equal units.
    """

    kind: str
    factor: float = 1.0
    offset: float = 0.0
    spread: float = 0.0
    name: str = ""


NO_UNIT = Unit("")


def read_unit(text: str, at: int) -> tuple[Unit, int]:
    """Return the unit at a position of a text and the position after it; `NO_UNIT` if there is none.

    Args:
        text: The text.
        at: Position after the number.
    """
    unit, end = _single(text, at)
    if unit is NO_UNIT:
        return unit, at
    per = _PER.match(text, end)
    below, after = _single(text, per.end()) if per else (NO_UNIT, end)
    if below is NO_UNIT or "temperature" in (unit.kind, below.kind):
        return unit, end
    kind = "speed" if (unit.kind, below.kind) == ("length", "time") else f"{unit.kind} per {below.kind}"
    spread = unit.spread + below.spread
    return Unit(kind, unit.factor / below.factor, 0.0, spread, f"{unit.name}/{below.name}"), after


def _single(text: str, at: int) -> tuple[Unit, int]:
    """Return a unit without "per": a case-sensitive symbol, a square or cube, a currency or a name."""
    start = re.compile(r"\s*[-‑]?(?=\S)").match(text, at)
    if start is None:
        return NO_UNIT, at
    begin = start.end()
    money, end = read_currency(text, begin)
    if money:
        return Unit(f"money {money}", name=money), end
    power, begin = _power_before(text, begin)
    name, end = _name_at(text, begin)
    if not name:
        return NO_UNIT, at
    unit = _units()[name]
    behind = None if power > 1 or unit.kind != "length" else _power_behind(text, end)
    if behind:
        power, end = behind
    return (_raised(unit, power), end) if unit.kind == "length" or power == 1 else (NO_UNIT, at)


def _power_before(text: str, at: int) -> tuple[int, int]:
    for power, pattern in ((2, _SQUARE), (3, _CUBIC)):
        match = re.compile(rf"{pattern}\s?", re.IGNORECASE).match(text, at)
        if match:
            return power, match.end()
    return 1, at


def _power_behind(text: str, at: int) -> tuple[int, int] | None:
    for power, pattern in ((2, _SQUARED), (3, _CUBED)):
        match = re.compile(rf"\s?{pattern}", re.IGNORECASE).match(text, at)
        if match and not (match[0].startswith(" ") and match[0].strip()[0].isdigit()):
            return power, match.end()
    return None


def _raised(unit: Unit, power: int) -> Unit:
    if power == 1:
        return unit
    return Unit("area" if power == 2 else "volume", unit.factor**power, 0.0, unit.spread * power, f"{unit.name}{power}")


def _name_at(text: str, at: int) -> tuple[str, int]:
    """Return the longest name of a unit at a position, and the position after it."""
    cased, names = _patterns()
    match = cased.match(text, at) or names.match(text, at)
    if match is None:
        return "", at
    if match.re is cased:
        return match[0], match.end()
    name = re.sub(r"\s+", " ", match[0].lower())
    return name if name in _units() else name.removesuffix("s"), match.end()


@cache
def _units() -> dict[str, Unit]:
    """Return all units by name; names are in lower case, except for symbols whose meaning depends on capitals."""
    units: dict[str, Unit] = {}
    kind = ""
    for line in UNITS.strip().splitlines():
        if ":" in line:
            for entry in line.split("|"):
                units |= _entry(kind, entry)
        else:
            kind = line
    for names in (entry.split() for line in OWN_UNITS.strip().splitlines() for entry in line.split("|")):
        units |= dict.fromkeys(names, Unit(names[0], name=names[0]))
    metres = [(name, unit) for name, unit in units.items() if unit.kind == "length" and name.endswith("meter")]
    for prefix, power in (("quadrat", 2), ("kubik", 3)):
        units |= {prefix + name: _raised(unit, power) for name, unit in metres}
    for name, (of, factor) in CASED_UNITS.items():
        units[name] = Unit(of, factor, OFFSETS.get(name, 0.0), name="kelvin" if name == "K" else name)
    return units


def _entry(kind: str, entry: str) -> dict[str, Unit]:
    """Return the units of an entry of the table, such as "ton tons:1000~0.11"."""
    names, _, size = entry.rpartition(":")
    size, _, spread = size.partition("~")
    size, _, per = size.partition("/")
    first = names.split()[0]
    unit = Unit(f"{kind} per time" if per else kind, float(size), OFFSETS.get(first, 0.0), float(spread or 0), first)
    return {name.replace("_", " "): unit for name in names.split()}


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of symbols with capitals and of all other names, longest first."""
    cased = "|".join(sorted(map(re.escape, CASED_UNITS), key=len, reverse=True))
    names = sorted((name for name in _units() if name not in CASED_UNITS), key=len, reverse=True)
    return re.compile(rf"(?:{cased})(?![^\W_])"), re.compile("|".join(map(_pattern, names)), re.IGNORECASE)


_SHORT_PLURALS = frozenset("lb oz kg km cm mm hr yr yd".split())  # noqa: SIM905


def _pattern(name: str) -> str:
    """Return the pattern of a unit's name, its plural and its end."""
    escaped = re.escape(name).replace(r"\ ", r"\s")
    if name == "in":
        return escaped + _INCH
    if _CJK.match(name) or not name[-1].isalnum():
        return escaped
    return escaped + ("s?" if len(name) > 2 or name in _SHORT_PLURALS else "") + _END
