"""Units of measurement, each with its factor to the base unit of its kind."""

from __future__ import annotations

import re

# Base units: kilogram, metre, square metre, second, litre, byte, watt, metre per second.
_FACTORS = """
mg milligram:0.000001 g gram gramme:0.001 kg kilo kilogram kilogramme:1 t ton tonne:1000
oz ounce:0.0283495 lb lbs pound:0.453592
mm millimetre millimeter:0.001 cm centimetre centimeter:0.01 m metre meter:1 km kilometre kilometer:1000
in inch inches:0.0254 ft foot feet:0.3048 yd yard:0.9144 mi mile:1609.344
m² m2 sqm:1 km² km2 sqkm:1000000 ha hectare:10000 acre:4046.856
ms millisecond:0.001 s sec second:1 min minute:60 h hr hour:3600 day:86400 week:604800 month:2629800 year:31557600
ml millilitre milliliter:0.001 cl centilitre:0.01 l litre liter:1
kb kilobyte:1000 mb megabyte:1000000 gb gigabyte:1000000000 tb terabyte:1000000000000
w watt:1 kw kilowatt:1000 mw megawatt:1000000 gw gigawatt:1000000000
km/h kph kmh:0.277778 mph:0.44704 m/s:1
"""
_BY_UNIT = {
    unit: float(factor) for units, factor in re.findall(r"([^:]+):([\d.]+)", _FACTORS) for unit in units.split()
}
_UNIT = re.compile(r"\s*-?(square (?:kilomet(?:re|er)|met(?:re|er)|mile)s?|[a-z]+/[a-z]+|[a-z]+[²2]?)", re.IGNORECASE)
_SQUARES = {
    "square kilometre": 1e6,
    "square kilometer": 1e6,
    "square metre": 1.0,
    "square meter": 1.0,
    "square mile": 2589988.11,
}


def unit_factor(text: str) -> float:
    """Return the factor of the unit at the beginning of a text, or 1 if there is none.

    Args:
        text: Text after a number, such as " kg" or " square kilometres".
    """
    match = _UNIT.match(text)
    if match is None:
        return 1.0
    unit = match[1].lower()
    single = unit.removesuffix("s") if unit not in _BY_UNIT else unit
    return _SQUARES.get(single) or _BY_UNIT.get(single, 1.0)
