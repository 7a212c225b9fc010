"""Other spellings of words: compounds and codes without their marks, initials, names with signs, umlauts.

Texts get these spellings as additional words, and queries search for them instead of a word or in addition, so that
either spelling finds the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pyrag.retrieval.words.languages import ENGLISH, OTHER

TRANSCRIBING = frozenset({"danish", ENGLISH, "german", "norwegian", OTHER, "swedish"})
"""Languages whose umlauts are also written as two letters, and those whose texts may contain such names."""

JOINER = "\u02d1"  # a letter for the analyzer, which does not occur between figures
_MIN_DIGITS = 7  # of a code that is also written without its hyphens, unless it has letters
_MAX_PIECES = 3  # of a word of letters and digits; a hash has more

_MARKS = {"-": re.compile(r"-(?<=[^\W\d_]-)(?=[^\W\d_])"), "'": re.compile("'(?<=[A-Z]')(?=[A-Z])")}
_COMPOUND = re.compile(r"(?:[^\W\d_]{1,2}-[^\W\d_]{2,}|[^\W\d_]{2,}-[^\W\d_]{1,2}|[A-Z]'[A-Z][a-z]+)(?![\w'-])")
_BREAK = re.compile(r"-(?<=[^\W\d_]-)[ \n](?=[a-z]{2})(?!(?:and|or|und|oder|bis|et|ou|och|og|en|of|to)\b)")
_INITIALS = re.compile(r"(?<!\w)(?:[A-Z]\.){2,}[A-Z](?!\w)")
_SIGNS = re.compile(r"(?:\+\+?|#)(?<=[^\W\d_][+#])(?![\w+#])|\+\+(?<=[^\W\d_]\+\+)(?![\w+#])")
_SIGN_NAMES = {"+": "plus", "#": "sharp"}
_SPACED = re.compile(r"(\+?)(?<![^\W_])([A-Z]{2}[0-9]{2}|[0-9]{2,4})((?: [0-9]{2,4}){3,9})(?![^\W_])")
_VERSION = re.compile(r"[vV][0-9]")
_MIXED = re.compile(r"(?<![^\W_])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{2,24}(?![^\W_])")
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+")
_MEASURE = re.compile(r"(?<![^\W_])(?:[0-9]+ [A-Za-z]{1,3}|[A-Z]{1,5} [0-9]{2,})(?![^\W_])")
_LETTER = re.compile(r"[^\W\d_]*")
UMLAUT = re.compile("[äöåøüÄÖÅØÜ\u0308\u030a]")
_TRANSCRIPTIONS = str.maketrans(
    {"ä": "ae", "ö": "oe", "å": "aa", "ø": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Å": "Aa", "Ø": "Oe", "Ü": "Ue"}
)


def spellings(text: str, kinds: bytes) -> list[str]:
    """Return the spellings of a text's words without marks, and names with the words of their signs (`C++`).

    Args:
        text: Folded text.
        kinds: Kinds of its characters; see `forms`.
    """
    words = ["".join(compound) for compound in compounds(text)]
    if "-" in text:
        gaps = _BREAK.finditer(text)
        words += [text[_start(text, gap.start()) : gap.start()] + _letters(text, gap.end()) for gap in gaps]
    return words + signed_words(text, kinds)


def compounds(text: str) -> Iterator[tuple[str, str]]:
    """Yield both parts of compounds with a part of at most two letters (`e-mail`), and of names such as `O'Dell`.

    Args:
        text: Folded text.
    """
    for sign, marks in _MARKS.items():
        for mark in marks.finditer(text) if sign in text else ():
            at = mark.start()
            if not (text[at - 3 : at].isalpha() and text[at + 1 : at + 4].isalpha()) or at < 3:
                start = _start(text, at)
                if text[start - 1 : start] not in ("-", "'", "_") and (word := _COMPOUND.match(text, start)):
                    yield text[start:at], text[at + 1 : word.end()]


def signed_words(text: str, kinds: bytes) -> list[str]:
    """Return initials without their points (`USA`), and names with the words of their signs, as a single word each.

    Args:
        text: Folded text.
        kinds: Kinds of its characters; see `forms`.
    """
    words = [initials.replace(".", "") for initials in _INITIALS.findall(text)] if b"A_A_A" in kinds else []
    if "+" in text or "#" in text:
        for signs in _SIGNS.finditer(text):
            end = signs.start()
            start = end - 1
            while start > 0 and text[start - 1].isalnum():
                start -= 1
            words.append(JOINER.join((text[start:end], *(_SIGN_NAMES[sign] for sign in signs[0]))))
    return words


def spaced_numbers(text: str, kinds: bytes) -> Iterator[str]:
    """Yield account and telephone numbers whose groups are separated by spaces, without the spaces.

    Args:
        text: Folded text.
        kinds: Kinds of its characters; see `forms`.
    """
    if b"0 00" not in kinds:
        return
    for plus, first, rest in _SPACED.findall(text):
        if plus:
            yield rest.replace(" ", "")
        yield first + rest.replace(" ", "")


def without_version(code: str) -> str:
    """Return a code without the `v` of a version."""
    return code[1:] if _VERSION.match(code) else code


def tight_code(code: str) -> str:
    """Return a code without its hyphens (`KLM4471`); empty if it is rarely written in this way.

    Args:
        code: Code with at least one digit.
    """
    tight = code.replace("-", "")
    usual = len(tight) >= _MIN_DIGITS or not tight.isdigit()
    return tight if usual and len(tight) < len(code) and tight.isalnum() else ""


def opaque_code(code: str) -> str:
    """Return a code without its hyphens if a query without them does not show its parts, as in an ISBN; else empty.

    Args:
        code: Code with at least one digit.
    """
    tight = tight_code(code)
    return tight if tight and (tight.isdigit() or len(_PIECE.findall(tight)) > _MAX_PIECES) else ""


def measures(text: str, common: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a query with their units, and letters with their numbers: `1200 kg`, `KLM 4471`.

    Args:
        text: Folded query.
        common: Common words of the query, which are no units.
    """
    for measure in _MEASURE.findall(text):
        first, _, second = measure.partition(" ")
        if not common & {first.lower(), second.lower()}:
            yield first, second


def mixed_words(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the words of a query that mix letters and digits, with these pieces.

    Args:
        text: Folded query.
    """
    for word in _MIXED.findall(text):
        if len(pieces := _PIECE.findall(word)) <= _MAX_PIECES:
            yield word, pieces


def transcriptions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words with umlauts and similar letters, with their spelling without them (`Mueller`).

    Args:
        text: Text that is not folded.
    """
    if "\u0308" in text or "\u030a" in text:
        text = unicodedata.normalize("NFC", text)
    end = 0
    for umlaut in UMLAUT.finditer(text):
        if (at := umlaut.start()) >= end:
            word = _letters(text, _start(text, at))
            end = at + 1 + len(_letters(text, at + 1))
            if (other := word.translate(_TRANSCRIPTIONS)) != word:
                yield word, other


def _start(text: str, at: int) -> int:
    while at > 0 and text[at - 1].isalpha():
        at -= 1
    return at


def _letters(text: str, at: int) -> str:
    """Return the letters from a place on."""
    letters = _LETTER.match(text, at)
    return letters[0] if letters else ""
