"""Numbers in English words ("two hundred and five", "half a dozen"), and scales in many languages ("Mio.", "crore")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: number for number, word in enumerate(_SMALL.split())}
_WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_ADVERBS = {"once": 1, "twice": 2, "thrice": 3}
_PARTS = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "eighth": 0.125, "tenth": 0.1}
_GROUPS = {
    "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9, "trillion": 10**12,
    "quadrillion": 10**15, "dozen": 12, "score": 20,
}  # fmt: skip
_ORDINALS = frozenset("first second third fourth fifth sixth seventh eighth ninth tenth".split())  # noqa: SIM905
_SMALL_PARTS = frozenset(("hundredth", "thousandth", "millionth", "billionth"))
_VAGUE = re.compile(
    r"(?:several|few|many|some|tens of|couple of|numerous)\s+(?:hundred|thousand|million|billion|dozen|lakh|crore)"
    r"|(?:hundreds|thousands|millions|billions|dozens|lakhs|crores)\s+of",
    re.IGNORECASE,
)
# Scales after digits. "billion" is read as English; a word that means another number in other languages is refused.
_SCALES = {
    10**2: "hundred hundert 百",
    10**3: "thousand tsd tausend mille mila duizend tusen tusind tuhat tuhatta tys tysięcy тысяч тысячи тысяча тыс "
    "nghìn ngàn ribu 千 천 พัน हज़ार हजार ألف آلاف אלף k",
    10**4: "万 萬 만 หมื่น",
    10**5: "lakh lakhs lacs लाख แสน",
    10**6: "million millions millionen millón millones milione milioni milhão milhões miljoen miljon miljoner "
    "millioner miljoona miljoonaa milion miliony milionów миллион миллиона миллионов млн mio mln mn mill milyon "
    "triệu juta ล้าน مليون מיליון",
    10**7: "crore crores करोड़",
    10**8: "億 亿 억",
    10**9: "billion milliard milliards milliarde milliarden miliardo miliardi miljard miljarder milliarder miljardi "
    "miliard miliardy miliardów миллиард миллиарда миллиардов млрд mrd mld mia bn md mdr mds milyar अरब tỷ "
    "bilhão bilhões "
    "مليار מיליארד",
    10**12: "trillion billionen billones bilioni biljoen triliun трлн триллион триллиона триллионов tn trn 兆 조 "
    "trilhão trilhões",
    12: "dozen dutzend douzaines docenas dozzine dúzias dozijn",
}
SCALES = {word: value for value, words in _SCALES.items() for word in words.split()}
_AMBIGUOUS = frozenset(("billions", "billón", "bilione", "trillionen", "trillions", "mil"))
_CASED = {"M": 10**6, "K": 10**3}
_SCALE = re.compile(
    r"(?P<space>\s*)-?(?P<word>(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0963\u0e31-\u0e4e])+)(?P<dot>\.(?=\s*[^\s\d]|\s*$))?",
)
_NAMES = frozenset(("mill", "mia", "tn", "mille", "score"))  # names if capitalised: 12 Mill Street
_CJK = re.compile("[百千万萬億亿兆만천억조]")


@dataclass(frozen=True, slots=True)
class Spelled:
    """Number in words.

    Attributes:
        value: The number.
        start: Position of the first character.
        end: Position after the last character.
    """

    value: int | float
    start: int
    end: int


def read_scale(text: str, at: int, *, money: bool = False) -> tuple[int, int]:
    """Return the scale after a numeral and the position after it; 1 if there is no scale.

    Args:
        text: The text.
        at: Position after the numeral.
        money: Whether a currency sign precedes the number, so that "m", "b" and "t" are scales.

    Raises:
        ValueError: A word may mean two different scales.
    """
    scale, end = 1, at
    while match := _SCALE.match(text, end):
        value = _scale_of(match, money=money and scale == 1)
        if not value:
            break
        scale, end = scale * value, match.end() - (0 if not _CJK.match(match["word"]) else len(match["word"]) - 1)
    return scale, end


def _scale_of(match: re.Match[str], *, money: bool) -> int:
    word, lower = match["word"], match["word"].lower()
    attached = not match["space"]
    if lower in _AMBIGUOUS:
        raise ValueError(f"{word!r} is another number in other languages: ask for the number in digits")
    if _CJK.match(word):
        return SCALES[word[0]]
    if word in _CASED and (attached or word == "M"):
        return _CASED[word]
    if word == "K":
        return 0
    if money and lower in "mbt":
        return {"m": 10**6, "b": 10**9, "t": 10**12}[lower]
    if attached and lower in ("b", "t") and word.isupper():
        raise ValueError(f"{match[0]!r} may be a scale or a unit: ask for the number in words")
    if lower in _NAMES and word != lower and not match["dot"]:
        return 0
    return SCALES.get(lower, 0)


def find_spelled(text: str, before: int | None = None) -> Spelled | None:
    """Return the first number in English words.

    Args:
        text: The text.
        before: Position before which the number must start.

    Raises:
        ValueError: The words are not a single number, as in "five or six" or "hundreds of".
    """
    tokens = [(match[0].lower(), match.start(), match.end()) for match in re.finditer(r"[^\W\d_]+|\d+|[^\w\s-]", text)]
    vague = _VAGUE.search(text)
    for place, (word, start, _) in enumerate(tokens):
        if before is not None and start >= before:
            return None
        if vague and vague.start() <= start:
            raise ValueError(f"{vague[0]!r} is not a number: ask for the exact number")
        if word in _WORDS or word in _ADVERBS or (word in ("a", "an", "half") and _opens(tokens, place)):
            value, after = _Words(tokens, place).read()
            return Spelled(value, start, tokens[after - 1][2])
        if word in _PARTS and word not in ("third", "fifth", "eighth", "tenth") and _follows(tokens, place, "of"):
            return Spelled(_PARTS[word], start, tokens[place][2])
    return None


_Tokens = list[tuple[str, int, int]]


def _opens(tokens: _Tokens, place: int) -> bool:
    """Return whether "a", "an" or "half" starts a number, as in "a dozen" or "half a million"."""
    following = [token[0] for token in tokens[place + 1 : place + 3]]
    if tokens[place][0] == "half":
        return len(following) == 2 and following[0] == "a" and (following[1] in _GROUPS or following[1] == "hundred")
    return bool(following) and ((following[0] in _GROUPS and following[0] != "score") or following[0] == "hundred")


def _follows(tokens: _Tokens, place: int, word: str) -> bool:
    return place + 1 < len(tokens) and tokens[place + 1][0] == word


class _Words:
    """Parser for a number in words, following the grammar of English numbers."""

    def __init__(self, tokens: _Tokens, at: int) -> None:
        self._tokens = tokens
        self._start = self._at = at

    def read(self) -> tuple[int | float, int]:
        value: int | float
        if self._word() in _ADVERBS:
            self._at += 1
            return _ADVERBS[self._tokens[self._start][0]], self._at
        if self._word() == "half":
            self._at += 2
            value = _exact(0.5 * self._scales(1))
        else:
            value = self._whole()
        self._ends()
        return value, self._at

    def _word(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place][0] if place < len(self._tokens) else ""

    def _whole(self) -> int | float:
        total: int | float = 0
        limit = 10**18
        while True:
            group = self._below_thousand()
            part = self._part()
            scale = self._scales(1)
            if scale >= limit:
                raise self._no_number()
            total, limit = total + (group + part) * scale, scale
            if self._word() == "and" and self._word(1) in _WORDS and scale >= 100:
                self._at += 1
            if scale < 100 or self._word() not in _WORDS:
                return _exact(total + self._part())

    def _below_thousand(self) -> int:
        value = self._below_hundred()
        if self._word() == "hundred":
            self._at += 1
            value *= 100
            if self._word() == "and" and self._word(1) in _WORDS:
                self._at += 1
            if self._word() in _WORDS:
                value += self._below_hundred()
        return value

    def _below_hundred(self) -> int:
        word = self._word()
        if word in ("a", "an"):
            self._at += 1
            return 1
        value = _WORDS[word]
        self._at += 1
        if value >= 20 and 0 < _WORDS.get(self._word(), 0) < 10:
            value += _WORDS[self._word()]
            self._at += 1
        return value

    def _part(self) -> float:
        """Return the value that "point five" or "and a half" adds."""
        if self._word() == "point" and _WORDS.get(self._word(1), 10) < 10:
            self._at += 1
            digits = ""
            while _WORDS.get(self._word(), 10) < 10:
                digits += str(_WORDS[self._word()])
                self._at += 1
            return float(f"0.{digits}")
        if self._word() == "and" and self._word(1) == "a" and self._word(2) in _PARTS:
            self._at += 3
            return _PARTS[self._word(-1)]
        if self._word() == "and" and self._word(1) == "three" and self._word(2) == "quarters":
            self._at += 3
            return 0.75
        return 0

    def _scales(self, scale: int) -> int:
        while self._word() in _GROUPS:
            scale *= _GROUPS[self._word()]
            self._at += 1
        return scale

    def _ends(self) -> None:
        """Raise an error if the words continue as a number."""
        before, word, following = self._word(-1), self._word(), self._word(1)
        goes_on = word in _WORDS or word in _GROUPS or word == "hundred" or word.isdigit()
        pairs = word in ("and", "or", "to") and (following in _WORDS or following.isdigit())
        parts = word.rstrip("s") in _PARTS and self._at > self._start
        joined = word in _ORDINALS and (
            before in _GROUPS or before in ("hundred", "and") or _WORDS.get(before, 0) >= 20
        )
        if goes_on or pairs or parts or joined or word.rstrip("s") in _SMALL_PARTS:
            raise self._no_number()

    def _no_number(self) -> ValueError:

        words = " ".join(token[0] for token in self._tokens[self._start : self._at + 2])

        return ValueError(f"{words!r} is not one number: ask for one number in digits")


def _exact(value: float) -> int | float:
    return round(value) if isinstance(value, float) and abs(value - round(value)) < 1e-9 else value
