"""Numerals in digits: grouping, decimal marks, and the evidence for the meaning of a mark.

`1.750` is more than a thousand in a text with decimal commas, and less than two in English. If a numeral's own form
allows only one reading (`1.480.500`, `1'234.50`, `12,34,567`), this is used; otherwise, the decimal mark of its context
decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from pyrag_helpers.language import COMMA_WORDS, POINT_WORDS

SPACES = " \u00a0\u202f\u2009"
_MAX_DIGITS = 300  # digits of a numeral, because the time of int() grows with their square
NUMERAL = (
    rf"(?:\d{{1,3}}(?:[{SPACES}]\d{{3}})+(?![\d'’])(?:[.,]\d+)?(?![.,]?\d)"
    r"|\d+(?:[.,_]\d+|['’]\d{3}(?!\d))*|(?<![\w.,])\.\d+)"
)
_NUMERAL = re.compile(NUMERAL)
_MARKS = str.maketrans({"’": "'", **dict.fromkeys(SPACES, " ")})
_SIGNS = str.maketrans({"٫": ".", "٬": ",", "．": ".", "，": ",", "－": "-", "％": "%"})
_WORD = re.compile(r"[^\W\d_]{2,}")
_POINT_SCRIPTS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f\u0900-\u097f\u0590-\u05ff]")


def plain_digits(text: str) -> str:
    """Return a text with the digits and marks of all scripts as ASCII; each character keeps its position."""
    if text.isascii():
        return text
    digits = {ord(c): str(unicodedata.decimal(c)) for c in set(text) if not c.isascii() and c.isdecimal()}
    return text.translate(digits | _SIGNS)


def is_open_point(numeral: str) -> bool:
    """Return whether a numeral such as `1.750` is more than a thousand in texts with decimal commas."""
    return bool(re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", numeral))


def read_numeral(numeral: str, mark: str = "") -> int | float:
    """Return the value of a numeral.

    Args:
        numeral: ASCII digits with marks, such as `1,480,500`, `12’400` or `2,75`, without sign and unit.
        mark: Decimal mark of the context, "." or ","; empty if unknown. Without it, `1,750` is read as in English.

    Raises:
        ValueError: The numeral is not a number, or may be two different ones.
    """
    text = numeral.translate(_MARKS)
    if sum(map(str.isdigit, text)) > _MAX_DIGITS:
        raise ValueError(f"the number {numeral[:40]!r}… is too long to be read: ask for it in another form")
    decimal = _decimal_mark(text) or (_by_context(text, mark) if _is_open(text) else "")
    if decimal and mark and decimal != mark and _decimal_mark(text) == decimal:
        raise ValueError(f"{numeral!r} has another decimal mark than the text around it: ask for the number again")
    whole, point, part = text.rpartition(decimal) if decimal else (text, "", "")
    if not _is_grouped(whole):
        raise ValueError(f"{numeral!r} is not a number: ask for the number only")
    digits = re.sub(r"\D", "", whole)
    return float(f"{digits or 0}.{part}") if point else int(digits)


def decimal_mark(texts: Iterable[str]) -> str:
    """Return the decimal mark that texts use, "." or ","; empty if there is no evidence or contradictory evidence.

    Numerals with only one reading are evidence. Without such numerals, the language of the words decides.

    Args:
        texts: Texts of a document, or the cells of a table.
    """
    marks: set[str] = set()
    words: set[str] = set()
    has_script = False
    for text in texts:
        plain = plain_digits(text)
        marks |= {_mark_of(match[0].translate(_MARKS)) for match in _NUMERAL.finditer(plain)}
        words |= set(_WORD.findall(plain.lower()))
        has_script = has_script or bool(_POINT_SCRIPTS.search(plain))
    marks.discard("")
    if marks:
        return marks.pop() if len(marks) == 1 else ""
    points, commas = has_script or bool(words & POINT_WORDS), bool(words & COMMA_WORDS)
    return "" if points == commas else "." if points else ","


@lru_cache(maxsize=1024)
def mark_of_text(text: str) -> str:
    """Return the decimal mark that a text uses."""
    return decimal_mark((text,))


def _decimal_mark(text: str) -> str:
    """Return the decimal mark that a numeral's own form shows; empty if it has none or is ambiguous."""
    marks = re.sub(r"\d", "", text)
    last = marks[-1:]
    if not last or last not in ".," or marks.count(last) > 1 or _is_open(text):
        return ""
    return last


def _mark_of(text: str) -> str:
    """Return the decimal mark that a numeral is evidence for; empty if it is not evidence."""
    marks = re.sub(r"\d", "", text)
    if not marks or not _is_grouped(re.sub(r"[.,]\d+$", "", text) if _decimal_mark(text) else text):
        return ""
    if len(set(marks)) == 1 and len(marks) > 1 and marks[0] in ".,":
        return "." if marks[0] == "," else ","
    return _decimal_mark(text)


def _is_open(text: str) -> bool:
    """Return whether a numeral such as `1.750` or `1,750` has two readings."""
    return bool(re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", text))


def _by_context(text: str, mark: str) -> str:
    """Return the decimal mark of a numeral with two readings; empty if its mark separates thousands."""
    own = "," if "," in text else "."
    if own == "." and not mark:
        raise ValueError(
            f"{text!r} is a thousand and more with decimal commas, and less in English: ask for the number in words, "
            "or with the words around it"
        )
    return own if own == mark else ""


def _is_grouped(text: str) -> bool:
    """Return whether digits are in one of the groupings in use: none, by thousands, or Indian."""
    return bool(re.fullmatch(r"\d*|\d{1,3}(?:([.,' _])\d{3}(?:\1\d{3})*)|\d{1,2}(?:,\d{2})+,\d{3}", text))
