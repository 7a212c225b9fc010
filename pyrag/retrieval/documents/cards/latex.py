"""Accents, letters and simple commands of LaTeX as plain text."""

from __future__ import annotations

import re
from unicodedata import normalize

_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a", "d": "\u0323",
    "b": "\u0331",
}  # fmt: skip
_LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å", "AA": "Å", "l": "ł",
    "L": "Ł", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ", "S": "§",
    "copyright": "©", "euro": "€", "pounds": "£", "ldots": "…", "dots": "…", "textendash": "–", "textemdash": "—",
    "textquoteright": "’", "textquoteleft": "‘", "LaTeX": "LaTeX", "TeX": "TeX", "textasciitilde": "~",
    "textbackslash": "\\", "textunderscore": "_",
}  # fmt: skip
_ACCENT = re.compile(r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*(\\?[^\W\d_])\s*\}|(\\?[^\W\d_]))")
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])(?:\{{\}}|[ \t]+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?[ \t]*(?=\{)|\\[A-Za-z]+(?![A-Za-z])[ \t]*")
_MARK = re.compile(r"\\([&%$#_{}])")
_SAFE = {"{": "\ue000", "}": "\ue001"}


def latex_text(text: str) -> str:
    """Return a text with accents composed, and without commands and braces. Formulas stay as they are.

    Args:
        text: Text as written for LaTeX.
    """
    if "\\" in text or "{" in text or "~" in text or "--" in text:
        pieces = re.split(r"((?<!\\)\$[^$\n]*\$)", text)
        text = "".join(piece if number % 2 else _plain(piece) for number, piece in enumerate(pieces))
    return " ".join(text.split())


def _plain(text: str) -> str:
    text = _ACCENT.sub(_accented, text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = text.replace(r"\textasciitilde", "~").replace("\\\\", " ").replace(r"\ ", " ")
    text = _MARK.sub(lambda match: _SAFE.get(match[1], match[1]), text)
    text = _COMMAND.sub("", text)
    text = text.replace("{", "").replace("}", "").replace("---", "—").replace("--", "–").replace("~", " ")
    return text.replace("\ue000", "{").replace("\ue001", "}")


def _accented(match: re.Match[str]) -> str:
    letter = (match[3] or match[4]).removeprefix("\\")
    return normalize("NFC", letter + _ACCENTS[match[1] or match[2]])
