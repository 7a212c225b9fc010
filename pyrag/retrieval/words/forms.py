"""Text in the form that the index analyses, and additional forms that make its words easier to find.

Passages and queries are treated in the same way, so that each may use any form: codes as a whole and in parts (`1.9.4`,
`10.4.8.2`), numbers with and without thousands separators, parts of `camelCase`, characters and pairs of characters in
scripts without spaces, and words of Korean, Hebrew and Arabic without the particles attached to them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase, digits

from pyrag.retrieval.documents.blocks import UNSPACED
from pyrag.retrieval.words.spellings import (
    JOINER,
    UMLAUT,
    opaque_code,
    signed_words,
    spaced_numbers,
    spellings,
    transcriptions,
    without_version,
)

MAX_LENGTH = 60  # characters; a longer word, such as a key or a hash, is indexed as its digest
_BOUNDARY = "\u200c"  # in Persian, between the parts of a word
_VOICING = 8  # combining class of the marks that make が of か: another letter, not an accent
_BREVE = "\u0306"  # й is another letter than и

_FOREIGN = re.compile(rb"\?\?*")  # of a text in ASCII, where it replaces foreign characters
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200d-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]|\u200c(?![\u0600-\u06ff])|(?<![\u0600-\u06ff])\u200c"
)
_LETTERS = str.maketrans("ىیکةٱ٬٫ςʼ’", "ييكها,.σ''", "ـʻ")
_RAISED = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹™℠")
_NOTE = re.compile(
    f"(?<=[^\\W_]{{3}})(?=[{''.join(sorted(_RAISED))}])"
)  # after a word; shorter ones are units, as in m²
_RUN = re.compile(f"[{UNSPACED}]+")
_LONG = re.compile(rf"[^\W_]{{{MAX_LENGTH + 1},}}")

_MARKS = b"._:/@\\#&=+~%-,'"
_KINDS = bytes.maketrans(
    b"".join((ascii_lowercase.encode(), ascii_uppercase.encode(), digits.encode(), _MARKS)),
    b"a" * 26 + b"A" * 26 + b"0" * 10 + b"_" * len(_MARKS),
)
"""Letters, figures and marks by kind, to see quickly where a text may have a form; `?` may be any other character."""
_LIKE_LETTERS = bytes.maketrans(b"A0?", b"aaa")
_LONG_WORD = b"a" * (MAX_LENGTH + 1)
_FIGURE = ord("0")
_AFTER_FIGURE_OR_GROUP = re.compile(rb"0(?!0)(?:[_ ?]00|[aA0?]{0,60}_{1,4}[aA0?])")
_BEFORE_FIGURE = re.compile(rb"_(?<=[aA0?]_)_{0,3}[aA?]*0")
_MAY_BE_GROUP = re.compile(rb"0(?=[_ ?]00)")
_HUMP = re.compile(rb"A(?<=[aA0]A)(?:(?<=aA)|(?=aa))")
_JOINT = re.compile(
    r"[._:/@\\#&=+~%\-,'](?=[._:/@\\#?&=+~%\-]{0,3}[^\W_])(?<=[^\W_].)(?:(?<![\-,'])|(?<=[0-9].)|(?=[0-9]))"
)
_CODE = re.compile(r"[^\W_]+(?:(?:[._:/@\\#?&=+~%\-]{1,4}|[,'])[^\W_]+)+")
_GROUPED = re.compile(
    r"[0-9](?<![0-9][0-9])(?<![0-9][,.'’_ ][0-9])[0-9]{0,2}([,.'’_ ])"
    r"((?:[0-9]{3}\1)*[0-9]{3}|(?:[0-9]{2}\1)+[0-9]{3})(?:(?!\1)[.,]([0-9]+))?(?![0-9]|\1[0-9])"
)
_WORD = re.compile(r"[^\W_]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]{2,}")
_HEBREW = re.compile("[\u05d0-\u05ea]{3,}")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3]{3,}")
_GLUED = re.compile(f"[\u05d0-\u06ff\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3{UNSPACED}]")
_HEBREW_PREFIXES = tuple("והבלכמש")
_PARTED = re.compile("[\u0600-\u06ff]+(?:\u200c[\u0600-\u06ff]+)+")
_ARABIC_PREFIXES = ("ال", "لل", "و", "ف", "ب", "ك", "ل")
_MAX_PREFIXES = 3


def folded(text: str) -> str:
    """Return a text without accents, compatibility forms and invisible characters (except `_BOUNDARY`).

    Args:
        text: Any text, which may contain lone surrogates.
    """
    return _folded_and_special(text)[0]


def plain(text: str) -> str:
    """Return a text in the analyzer's form: folded, and with single characters in scripts without spaces.

    Args:
        text: Any text, folded or not.
    """
    text, special, _ = _folded_and_special(text)
    return _split(text, special) if special or _has_long_words(_kinds(text)) else text


def analysed(text: str, *, transcribe: bool = True) -> tuple[str, str]:
    """Return a text in the analyzer's form, and the additional forms of its words.

    Args:
        text: Any text.
        transcribe: Whether to add words with umlauts in their spelling without them.
    """
    bare, special, has_umlauts = _folded_and_special(text)
    kinds = _kinds(bare)
    everywhere = special or _has_long_words(kinds)
    forms = _forms(bare, kinds, special, everywhere)
    if transcribe and has_umlauts:
        forms = " ".join(filter(None, (forms, *(other for _, other in transcriptions(text)))))
    return _split(bare, special) if everywhere else bare, forms


def _folded_and_special(text: str) -> tuple[str, bool, bool]:
    """Return a folded text, whether it has a script that glues or joins words, and whether it may have umlauts."""
    if text.isascii():
        return text, False, False
    parts: list[str] = []
    special = has_umlauts = False
    end = 0
    for foreign in _FOREIGN.finditer(text.encode("ascii", "replace")):
        start = foreign.start()
        run, run_is_special, run_has_umlauts = _folded(text[start : foreign.end()])
        special |= run_is_special
        has_umlauts |= run_has_umlauts
        parts += (text[end:start], " " if text[start] in _RAISED and _ends_word(text, start) else "", run)
        end = foreign.end()
    return "".join([*parts, text[end:]]), special, has_umlauts


def _ends_word(text: str, at: int) -> bool:
    """Return whether a raised number at this place is a note, not an exponent of a unit: after a word or a number."""
    return text[at - 1 : at].isdigit() or (at > 2 and text[at - 3 : at].isalpha())


def _split(text: str, special: bool) -> str:
    if special:
        text = _RUN.sub(lambda run: f" {' '.join(run[0])} ", text.replace(_BOUNDARY, ""))
    return _LONG.sub(lambda word: digest_of_word(word[0]), text)


def _has_long_words(kinds: bytes) -> bool:
    """Return whether a text may contain a word of more than `MAX_LENGTH` characters."""
    return len(kinds) > MAX_LENGTH and _LONG_WORD in kinds.translate(_LIKE_LETTERS)


def digest_of_word(word: str) -> str:
    return hashlib.blake2b(word.lower().encode("utf-8", "replace"), digest_size=16).hexdigest()


def query_forms(text: str) -> str:
    """Return the additional forms of a query's words, as a text for the analyzer; empty if there are none.

    Args:
        text: Folded query in its original case.
    """
    special = _folded_and_special(text)[1]
    kinds = _kinds(text)
    return _forms(text, kinds, special, special or _has_long_words(kinds), query=True)


def _forms(text: str, kinds: bytes, special: bool, everywhere: bool, *, query: bool = False) -> str:
    """Return the additional forms of a text's words.

    Args:
        text: Folded text.
        kinds: Kinds of its characters.
        special: Whether the text has a script that glues or joins words.
        everywhere: Whether to look for codes in the whole text, not only where `kinds` shows digits next to marks.
        query: Whether the text is a query, which searches for parts of words and compounds instead of adding them.
    """
    parts: list[str] = []
    may_be_group = _AFTER_FIGURE_OR_GROUP.search(kinds)
    if b"0" in kinds if everywhere else may_be_group or _BEFORE_FIGURE.search(kinds):
        figures = [code for code in codes(text) if has_figure(code)]
        parts += map(_whole, figures)
        if not query:
            parts += map(_short, filter(None, map(opaque_code, figures)))
    if may_be_group:
        parts += _numbers(text, kinds)
        parts += spaced_numbers(text, kinds)
    parts += signed_words(text, kinds) if query else spellings(text, kinds)
    if not query and _HUMP.search(kinds):
        for word in _humps(text, kinds):
            parts += pieces(word)
    if special:
        parts += _glued_forms(text)
    return " ".join(parts)


def _kinds(text: str) -> bytes:
    """Return the kinds of a text's characters, one byte each."""
    return text.encode("ascii", "replace").translate(_KINDS)


def codes(text: str) -> Iterator[str]:
    """Yield codes, whose parts are only meaningful in their order: versions, dates, addresses, numbers.

    Args:
        text: Folded text.
    """
    end, code = 0, None
    for joint in _JOINT.finditer(text):
        at = joint.start()
        while end <= at:
            if (code := _CODE.search(text, max(end, text.rfind(" ", end, at) + 1))) is None:
                return
            end = code.end()
        if code and code.start() < at:
            yield code[0]
            code = None


def _start_of_word(text: str, at: int) -> int:
    while at > 0 and text[at - 1].isalnum():
        at -= 1
    return at


def has_figure(code: str) -> bool:
    """Return whether a code contains a digit."""
    return any(map(str.isdigit, code))


def _whole(code: str) -> str:
    """Return a code as a single word, regardless of the marks between its parts."""
    return _short(JOINER.join(_WORD.findall(without_version(code))))


def _short(word: str) -> str:
    return digest_of_word(word) if len(word) > MAX_LENGTH else word


def without_separators(text: str) -> str:
    """Remove thousands separators from the numbers in a text, except for spaces, which may separate numbers.

    Args:
        text: Folded text.
    """
    return _GROUPED.sub(lambda number: number[0] if number[1] == " " else ".".join(_digits(number)), text)


def _numbers(text: str, kinds: bytes) -> Iterator[str]:
    end = 0
    for group in _MAY_BE_GROUP.finditer(kinds):
        if (at := group.start()) < end:
            continue
        while at > end and kinds[at - 1] == _FIGURE:
            at -= 1
        if number := _GROUPED.match(text, at):
            end = number.end()
            parts = _digits(number)
            yield parts[0] if len(parts) == 1 else f"{' '.join(parts)} {JOINER.join(parts)}"


def _digits(number: re.Match[str]) -> list[str]:
    """Return the digits of a number without separators, and the digits of its fraction, if any."""
    integer = "".join(filter(str.isdigit, number.string[number.start() : number.end(2)]))
    return [integer, number[3]] if number[3] else [integer]


def humps(text: str) -> Iterator[str]:
    """Return the words in camel case.

    Args:
        text: Folded text.
    """
    return _humps(text, _kinds(text))


def _humps(text: str, kinds: bytes) -> Iterator[str]:
    end = 0
    for hump in _HUMP.finditer(kinds):
        if hump.start() >= end and (word := _WORD.search(text, _start_of_word(text, hump.start()))):
            end = word.end()
            yield word[0]


def pieces(word: str) -> list[str]:
    """Return the parts of a word in camel case."""
    return _PIECE.findall(word)


def _glued_forms(text: str) -> list[str]:
    text = " ".join(text[run.start() : run.end()] for run in _FOREIGN.finditer(text.encode("ascii", "replace")))
    parts = [pair for run in _RUN.findall(text) for pair in _pairs(run)]
    parts += [word.replace(_BOUNDARY, " ") for word in _PARTED.findall(text)]
    for word in _HANGUL.findall(text):
        parts += [*word, *(_pairs(word) if len(word) > 2 else ())]
    for word in _HEBREW.findall(text):
        parts += _without_prefixes(word, _HEBREW_PREFIXES)
    for word in _ARABIC.findall(text):
        parts += _without_prefixes(word, _ARABIC_PREFIXES)
    return parts


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _without_prefixes(word: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    """Yield a word without its attached articles, prepositions and conjunctions, removing one at a time."""
    for _ in range(_MAX_PREFIXES):
        prefix = next((item for item in prefixes if word.startswith(item)), "")
        word = word[len(prefix) :]
        if not prefix or len(word) < 2:
            return
        yield word


@lru_cache(maxsize=4096)
def _folded(run: str) -> tuple[str, bool, bool]:
    has_umlauts = UMLAUT.search(run) is not None
    parts = unicodedata.normalize("NFKD", _NOTE.sub(" ", _INVISIBLE.sub("", run)).encode("utf-8", "replace").decode())
    bare = "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() else c for at, c in enumerate(parts)
        if unicodedata.combining(c) in (0, _VOICING) or (c == _BREVE and parts[at - 1 : at] in ("и", "И"))
    )  # fmt: skip
    run = unicodedata.normalize("NFC", bare).translate(_LETTERS)
    return run, _GLUED.search(run) is not None, has_umlauts
