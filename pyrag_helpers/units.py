"""Units of measurement and currencies: the kind of quantity, and the factor to the base unit of the kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

# By kind: names of a unit (plurals with "s" need no entry; "_" is a space) and its factor to the base unit. "~" and the
# share by which the unit differs between countries follow the factor of such a unit.
_TABLE = """
mass
mg milligram milligramm миллиграмм:1e-6|g gram gramme gramm grammi gramo gramos gramas г грамм граммов グラム 克:0.001
kg kilo kilogram kilogramme kilogramm kilogramos quilo quilos kg. chilo chili chilogrammi кг килограмм килограммов キログラム 公斤 千克:1
µg μg microgram:1e-9|t tonne metric_ton metric_tonne tonnen tonelada toneladas tonnellata tonnellate т тонн тонны トン 吨:1000
ton tons:1000~0.11|short_ton:907.18474|long_ton:1016.0469088|kilotonne kilotonnen:1e6|megatonne:1e9|quintal zentner:100~0.55
oz ounce:0.028349523125~0.1|lb lbs pound pfund:0.45359237~0.11|stone:6.35029318|carat:0.0002|hundredweight cwt:50~0.11
length
nm nanometre nanometer:1e-9|µm μm micrometre micrometer micron:1e-6
mm millimetre millimeter millimètre milímetro millimetri миллиметров мм 毫米:0.001
cm centimetre centimeter zentimeter centimètre centímetro centimetri см сантиметров センチ センチメートル 厘米:0.01
dm decimetre decimeter dezimeter:0.1
m metre meter metern mètre metro metros metri м метр метра метров メートル 米:1
km kilometre kilometer kilometern kilomètre kilómetro quilômetro quilómetro chilometro chilometri км километр километра километров キロ キロメートル 公里 千米:1000
in inch inches zoll ″:0.0254|ft foot feet ′:0.3048|yd yard:0.9144|mi mile miles statute_mile:1609.344
nautical_mile nmi seemeile seemeilen:1852|fathom:1.8288|furlong:201.168|au astronomical_unit:149597870700
light-year light_year lightyear lichtjahr lichtjahre ly:9.4607304725808e15|parsec:3.0856775814913673e16
area
ha hectare hektar hectárea hectárea ettari hectares га гектаров 公顷 ヘクタール:10000|acre:4046.8564224|sqm:1|sqft:0.09290304|sqkm:1e6|sqmi:2589988.110336
volume
ml millilitre milliliter millilitro mililitro мл 毫升:1e-6|cl centilitre centiliter:1e-5|dl decilitre deciliter:1e-4
l litre liter litro litri л литр литра литров リットル 升:0.001|hl hectolitre hectoliter hektoliter:0.1|cc ccm:1e-6
gallon gal:0.003785411784~0.21|us_gallon u.s._gallon:0.003785411784|imperial_gallon:0.00454609
pint:0.000473176473~0.21|quart:0.000946352946~0.21|fluid_ounce fl_oz:2.95735295625e-5~0.05|barrel bbl:0.158987294928~0.05
time
ns nanosecond:1e-9|µs μs microsecond:1e-6|ms millisecond millisekunde millisekunden:0.001
s sec second seconde sekunde sekunden segundo secondo secondi секунд с сек 秒:1
min minute minuten minuto minuti минут минуты мин 分 分钟 分鐘 分間:60
h hr hour stunde stunden heure hora ora ore uur uren час часа часов ч 小时 小時 時間:3600
d day tag tage tagen jour día dia giorno giorni dag dagen день дня дней 天 日間:86400
week woche wochen semaine semana settimana settimane weken недель недели 周:604800~0.001
month monat monate monaten mois mes meses mese mesi maand maanden месяц месяца месяцев ヶ月 个月:2629800~0.08
year yr jahr jahre jahren ans année año ano anno anni jaar jaren год года лет 年:31557600~0.003
fortnight:1209600|decade jahrzehnt:315576000~0.003|century centuries jahrhundert jahrhunderte:3155760000~0.001
speed
kph kmh km/h:0.2777777777777778|mph:0.44704|knot kn knoten:0.5144444444444445
temperature
°c °_c ℃ degree_celsius degrees_celsius celsius degrees_c degree_c grad_celsius grad_c градусов_цельсия 摄氏度:1
°f °_f ℉ degree_fahrenheit degrees_fahrenheit fahrenheit degrees_f degree_f:0.5555555555555556|kelvin:1.0
data
byte:1|kb kilobyte:1e3|mb megabyte:1e6|gb gigabyte:1e9|tb terabyte:1e12|pb petabyte:1e15
kib kibibyte:1024|mib mebibyte:1048576|gib gibibyte:1073741824|tib tebibyte:1099511627776
bit:0.125|kbit kilobit:125|mbit megabit:125000|gbit gigabit:1.25e8|tbit terabit:1.25e11
kbps:125/s|mbps:125000/s|gbps:1.25e8/s
power
w watt:1|kw kilowatt:1000|megawatt:1e6|gw gigawatt:1e9|milliwatt:0.001|terawatt tw:1e12|horsepower hp ps:740~0.02
energy
j joule:1|kj kilojoule:1000|megajoule:1e6|kwh kilowattstunde kilowattstunden:3.6e6|wh:3600|mwh:3.6e9|gwh:3.6e12|kcal kilocalorie:4184|calorie:4184~0.9991
frequency
hz hertz:1|khz kilohertz:1000|mhz megahertz:1e6|ghz gigahertz:1e9
pressure
pa pascal:1|hpa:100|kpa:1000|bar:1e5|mbar:100|psi:6894.757293168
share
% percent per_cent prozent pour_cent процентов ％ 百分点:1|‰ permille:0.1
"""
# Units that are compared with themselves only.
_OWN = """
° degree degrees grad|decibel db|volt v|ampere amp|ohm|lumen lm|candela cd|pixel px|megapixel mp|rpm|bpm|ppm|league|cubit|bushel|cup|tablespoon tbsp|teaspoon tsp|hand|acre-foot|mol|newton|kilonewton kn_force|tesla|lux
""".replace("\n", "|")
# Symbols whose meaning depends on capitals, which come before all others.
_CASED = {
    "MW": ("power", 1e6), "mW": ("power", 1e-3), "MJ": ("energy", 1e6), "mJ": ("energy", 1e-3), "Mt": ("mass", 1e9),
    "kt": ("mass", 1e6), "K": ("temperature", 1.0), "B": ("data", 1.0), "nm": ("length", 1e-9),
    "kb": ("kb or kbit", 1.0), "Kb": ("kb or kbit", 1.0), "Mb": ("MB or Mbit", 1.0), "Gb": ("GB or Gbit", 1.0),
    "Tb": ("TB or Tbit", 1.0), "Mbit": ("data", 125e3), "Gbit": ("data", 125e6), "kHz": ("frequency", 1e3),
}  # fmt: skip
_SQUARE = r"(?:square|sq\.?|vierkante|kvadrat|кв\.?|квадратн\w+|平方)"
_CUBIC = r"(?:cubic|cu\.?|kubieke|куб\.?|кубическ\w+|立方)"
_SQUARED = r"(?:²|\^?2(?![\d.,])|squared\b|cuadrad[oa]s?\b|carrés?\b|quadrat[oi]\b|quadrad[oa]s?\b)"
_CUBED = r"(?:³|\^?3(?![\d.,])|cubed\b|c[úu]bic[oa]s?\b|cubes?\b|cubi\b)"
_PER = r"(?:/\s*|\s+(?:per|pro|par|por|al|an|a|в)\s+|\s*p/)"
_INCH = r"(?=\s*(?:$|[).,;]|(?:long|wide|high|tall|deep|thick|by|x|in diameter)\b))"  # "in" is a preposition elsewhere
_END = r"(?:(?![^\W_])|(?=[²³23](?![^\W_])))"  # of a unit, or of one that is squared or cubed
_COMPOUND = {"quadrat": "area", "kubik": "volume"}
_OFFSETS = {"f": -32.0, "k": -273.15}  # of scales that begin elsewhere


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement or a currency.

    Attributes:
        kind: Kind of quantity; units of one kind can be compared.
        factor: Size in the base unit of the kind.
        offset: Number that is added before the factor applies, for temperatures.
        spread: Share by which the unit differs between countries and uses.
        name: Its name in lower case; equal for equal units.
    """

    kind: str
    factor: float = 1.0
    offset: float = 0.0
    spread: float = 0.0
    name: str = ""

    @property
    def is_money(self) -> bool:
        """Whether it is a currency."""
        return self.kind.startswith("money")


NO_UNIT = Unit("")


def read_unit(text: str, at: int) -> tuple[Unit, int]:
    """Return the unit at a place of a text and the place after it; `NO_UNIT` and the same place without one.

    Args:
        text: The text.
        at: Place behind the number.
    """
    unit, end = _single(text, at)
    if unit is NO_UNIT:
        return unit, at
    per = re.compile(_PER).match(text, end)
    below, after = _single(text, per.end()) if per else (NO_UNIT, end)
    if below is NO_UNIT or "temperature" in (unit.kind, below.kind):
        return unit, end
    kind = "speed" if (unit.kind, below.kind) == ("length", "time") else f"{unit.kind} per {below.kind}"
    spread = unit.spread + below.spread
    return Unit(kind, unit.factor / below.factor, 0.0, spread, f"{unit.name}/{below.name}"), after


def _single(text: str, at: int) -> tuple[Unit, int]:
    """Return a unit without "per": a cased symbol, a square or cube, a currency or a name."""
    from pyrag_helpers.money import read_currency

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
    """Return the longest name of a unit at a place and the place after it."""
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
    """Return all units by name, capitals kept only in `_CASED`."""
    units: dict[str, Unit] = {}
    kind = ""
    for line in _TABLE.strip().splitlines():
        if ":" not in line:
            kind = line
            continue
        for entry in line.split("|"):
            names, _, size = entry.rpartition(":")
            size, _, spread = size.partition("~")
            factor, _, per = size.partition("/")
            shown = names.split()
            offset = _OFFSETS.get(_scale_letter(shown[0]), 0.0) if kind == "temperature" else 0.0
            of = f"{kind} per time" if per else kind
            for name in shown:
                units[name.replace("_", " ")] = Unit(of, float(factor), offset, float(spread or 0), shown[0])
    for entry in _OWN.split("|"):
        for name in entry.split():
            units[name.replace("_", " ")] = Unit(entry.split()[0], name=entry.split()[0])
    for prefix, of in _COMPOUND.items():
        for name in [name for name, unit in units.items() if unit.kind == "length" and name.endswith("meter")]:
            units[prefix + name] = _raised(units[name], 2 if of == "area" else 3)
    for name, (of, factor) in _CASED.items():
        units[name] = Unit(of, factor, -273.15 if name == "K" else 0.0, name=name.lower() if name != "K" else "kelvin")
    return units


def _scale_letter(name: str) -> str:
    return "f" if name.endswith("f") else "k" if name == "kelvin" else ""


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of symbols with capitals and of all other names, longest first."""
    names = sorted((name for name in _units() if name not in _CASED), key=len, reverse=True)
    cjk = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    ends = [re.escape(name).replace(r"\ ", r"\s") + ("" if cjk.match(name) else f"s?{_END}") for name in names]
    ends = [end.replace("s?(", "(", 1) if len(name) < 3 and name != "lb" else end for name, end in zip(names, ends, strict=True)]
    ends = [rf"in{_INCH}" if name == "in" else end for name, end in zip(names, ends, strict=True)]
    ends = [end.removesuffix(_END).removesuffix("s?") if not name[-1].isalnum() else end for name, end in zip(names, ends, strict=True)]
    cased = "|".join(sorted(map(re.escape, _CASED), key=len, reverse=True))
    return re.compile(rf"(?:{cased})(?![^\W_])"), re.compile("|".join(f"(?:{end})" for end in ends), re.IGNORECASE)
