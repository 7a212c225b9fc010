"""Numbers in texts, in digits or words, with their scale and unit: "1.18 trillion", "two hundred", "900 g"."""

from __future__ import annotations

import re

from pyrag_helpers.known import require_known
from pyrag_helpers.units import unit_factor

# fmt: off
_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
          "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# fmt: on
_WORDS = {word: number for number, word in enumerate(_UNITS)} | {word: 20 + 10 * n for n, word in enumerate(_TENS)}
_ADVERBS = {"once": 1, "twice": 2, "thrice": 3, "dozen": 12}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_DIGITS = re.compile(
    r"(?P<minus>(?<![\w\d])[-−])?(?P<number>\d{1,3}(?:[,\u00a0\u202f\u2009 ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:\s*(?P<scale>hundred|thousand|million|billion|trillion|m(?=n\b)|bn\b))?",
    re.IGNORECASE,
)


def parse_number(text: str | int | float) -> int | float:
    """Return the first number in a text, in digits or words, with its scale ("1.18 trillion"); units are ignored."""
    text = require_known(text)
    if isinstance(text, int | float):
        return text
    digits, spelled = _DIGITS.search(text), _spelled_number(text)
    if spelled is not None and (digits is None or spelled[0] < digits.start()):
        return spelled[1]
    if digits is None:
        raise ValueError(f"no number in {str(text)!r}: ask for the number again, or test with is_known() first")
    number = re.sub(r"[^\d.]", "", digits["number"])
    scale = {"m": "million", "bn": "billion"}.get((digits["scale"] or "").lower(), (digits["scale"] or "").lower())
    value = _exact(number) * _SCALES.get(scale, 1)
    value = -value if digits["minus"] else value
    return round(value) if isinstance(value, float) and scale and abs(value - round(value)) < 1e-3 else value


def parse_quantity(text: str | int | float) -> int | float:
    """Return the first number in a text in the base unit of its kind (kg, m, s): 900 g is 0.9.

    Units of no known kind are ignored.
    """
    number = parse_number(text)
    digits = _DIGITS.search(text) if isinstance(text, str) else None
    factor = unit_factor(text[digits.end() :]) if digits is not None and isinstance(text, str) else 1.0
    return number if factor == 1.0 else number * factor


def _exact(number: str) -> int | float:
    return float(number) if "." in number else int(number[:300])  # a longer one is no quantity, and int() is quadratic


def _spelled_number(text: str) -> tuple[int, int] | None:
    """Return position and value of the first number in words: "two hundred and five"."""
    total = group = 0
    start = -1
    for match in re.finditer(r"[a-z]+|[^a-z\s-]", text.lower()):
        word = match[0]
        value = _WORDS.get(word, _ADVERBS.get(word))
        if value is not None:
            start, group = (match.start() if start < 0 else start), group + value
        elif word in _SCALES and start >= 0:
            total, group = (total, group * 100) if word == "hundred" else (total + group * _SCALES[word], 0)
        elif start >= 0 and word != "and":
            break
    return None if start < 0 else (start, total + group)
