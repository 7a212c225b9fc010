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
    "textquoteright": "’", "textquoteleft": "‘", "LaTeX": "LaTeX", "TeX": "TeX", "textasciitilde": "\ue002",
    "textbackslash": "\ue003", "textunderscore": "_",
}  # fmt: skip
_ACCENT = re.compile(r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*(\\?[^\W\d_])\s*\}|(\\?[^\W\d_]))")
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])(?:\{{\}}|[ \t]+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?[ \t]*(?=\{)|\\[A-Za-z]+(?![A-Za-z])[ \t]*")
_MARK = re.compile(r"\\([&%$#_{}]|[~^](?=\{\s*\}))")
_SAFE = {"{": "\ue000", "}": "\ue001", "~": "\ue002", "\\": "\ue003"}  # until the signs of LaTeX are replaced
_PLAIN_SIGNS = str.maketrans({safe: sign for sign, safe in _SAFE.items()})
_AS_WRITTEN = re.compile(r"((?<!\\)\$[^$\n]*\$|\\url\s*\{[^{}]*\})")
_ESCAPE = re.compile(r"\\url(?![A-Za-z])\s*|\\([&%$#_{}~])|[{}]")


def latex_text(text: str) -> str:
    """Return a text with accents composed, and without commands and braces. Formulas stay as they are."""
    if "\\" in text or "{" in text or "~" in text or "--" in text:
        pieces = enumerate(_AS_WRITTEN.split(text))
        text = "".join(
            _plain(piece) if number % 2 == 0 else piece if piece.startswith("$") else verbatim_text(piece)
            for number, piece in pieces
        )
    return " ".join(text.split())


def verbatim_text(text: str) -> str:
    """Return an address or identifier, in which a tilde and two hyphens stand for themselves."""
    text = _ESCAPE.sub(lambda match: match[1] or "", text.replace(r"\textasciitilde", "~"))
    return " ".join(text.split())


def _plain(text: str) -> str:
    text = _ACCENT.sub(_accented, text)
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], text)
    text = text.replace("\\\\", " ").replace(r"\ ", " ")
    text = _MARK.sub(lambda match: _SAFE.get(match[1], match[1]), text)
    text = _COMMAND.sub("", text)
    text = text.replace("{", "").replace("}", "").replace("---", "—").replace("--", "–").replace("~", " ")
    return text.translate(_PLAIN_SIGNS)


def _accented(match: re.Match[str]) -> str:
    letter = (match[3] or match[4]).removeprefix("\\")
    return normalize("NFC", letter + _ACCENTS[match[1] or match[2]])
