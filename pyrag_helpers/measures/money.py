"""Currencies, with their codes, signs and words."""

from __future__ import annotations

import re

_CODES = (
    "USD EUR GBP JPY CNY CHF CAD AUD NZD HKD SGD SEK NOK DKK ISK PLN CZK HUF RON BGN RUB UAH TRY ILS INR PKR BDT LKR "
    "NPR IDR MYR PHP THB VND KRW TWD BRL MXN ARS CLP COP PEN ZAR EGP NGN KES MAD AED SAR QAR KWD IRR IQD XAU BTC RMB"
)
# The code that a sign or word stands for, or a name of its own if several countries use it.
_NAMES = {
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD",
    "R$": "BRL", "NT$": "TWD", "$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₺": "TRY", "₪": "ILS",
    "₩": "KRW", "₫": "VND", "₴": "UAH", "₱": "PHP", "฿": "THB", "zł": "PLN", "Kč": "CZK", "Rs.": "rupee", "Rs": "rupee",
    "¥": "¥", "￥": "¥", "kr.": "kr", "kr": "kr", "Fr.": "franc", "SFr.": "CHF", "RMB": "CNY",
}  # fmt: skip
_WORDS = {
    "dollar": "USD", "euro": "EUR", "pounds sterling": "GBP", "pound sterling": "GBP", "yen": "JPY", "yuan": "CNY",
    "renminbi": "CNY", "swiss franc": "CHF", "franken": "CHF", "rupee": "rupee", "indian rupee": "INR",
    "rouble": "RUB", "ruble": "RUB", "рублей": "RUB", "рубля": "RUB", "рубль": "RUB", "franc": "franc",
    "crown": "crown", "krone": "crown", "kroner": "crown", "kronor": "crown", "krona": "crown", "mark": "mark",
    "peso": "peso", "won": "KRW", "zloty": "PLN", "złoty": "PLN", "złotych": "PLN", "forint": "HUF", "shekel": "ILS",
    "rand": "ZAR", "dinar": "dinar", "lira": "lira", "lire": "lira", "guilder": "guilder",
    "reais": "BRL", "baht": "THB", "cent": "cent", "pence": "pence", "円": "JPY", "元": "CNY", "원": "KRW",
    "us dollar": "USD", "u.s. dollar": "USD", "american dollar": "USD", "australian dollar": "AUD",
    "canadian dollar": "CAD", "new zealand dollar": "NZD", "hong kong dollar": "HKD", "singapore dollar": "SGD",
    "guinea": "guinea", "shilling": "shilling", "ducat": "ducat", "thaler": "thaler", "taler": "thaler",
}  # fmt: skip


def _alternatives(names: dict[str, str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_SIGN = re.compile(
    rf"(?P<sign>{_alternatives(_NAMES)})(?![^\W\d_])|(?P<code>{'|'.join(_CODES.split())})(?![^\W\d_])"
    rf"|(?i:(?P<word>{_alternatives(_WORDS)})s?)(?![a-z])"
)
_BEFORE = re.compile(rf"(?<![^\W\d_])(?:{_alternatives(_NAMES)}|{'|'.join(_CODES.split())})\s?$")


def read_currency(text: str, at: int) -> tuple[str, int]:
    """Return the currency at a position of a text and the position after it; an empty name if there is none.

    Args:
        text: The text.
        at: Position after a number.
    """
    match = _SIGN.match(text, at)
    if match is None:
        return "", at
    return _name(match[match.lastgroup or 0], is_word=match.lastgroup == "word"), match.end()


def currency_before(text: str, at: int) -> tuple[str, int]:
    """Return the currency just before a number and its first position; an empty name if there is none.

    Args:
        text: The text.
        at: Position of the number's first character.
    """
    match = _BEFORE.search(text, max(0, at - 8), at)
    return (_name(match[0].strip()), match.start()) if match else ("", at)


def _name(shown: str, *, is_word: bool = False) -> str:
    if is_word:
        return _WORDS.get(shown.lower(), shown)
    return _NAMES.get(shown, shown)
