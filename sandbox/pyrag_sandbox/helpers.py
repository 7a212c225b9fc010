"""Pure functions that a program may call on texts: dates, numbers, periods, names and lists.

They read what an answer says ("7 December 1973", "1.18 trillion", "from 1914 to 1938", "the U.S.") and compute with
it, so that no model is asked to do arithmetic. A text that holds nothing readable raises `ValueError`, whose message
says what to do instead; an answer that was not found raises `UnknownAnswerError`. Nothing here guesses a missing value,
looks anything up or keeps state.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import TypeVar

from pyrag_sandbox.quantities import unit_factor
from pyrag_sandbox.unknown import is_unknown

PRESENT = date(9999, 12, 31)  # the end of a period that has not ended

T = TypeVar("T")
Period = tuple[date, date]
Datable = str | int | date

_MONTHS = {name[:3].lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<{0}>\d{{3,4}})(?![\d])(?!,\d{{3}})"
_DECADE = r"(?P<{0}>'?s\b)?"
_ERA = r"(?P<{0}>\s*(?:BCE?|B\.\s?C\.(?:\s?E\.)?))?(?![a-zA-Z])"
_DATE = re.compile(
    "|".join(
        (
            rf"\b{_DAY.format('d1')}(?:\s+or\s+\d{{1,2}}(?:st|nd|rd|th)?)?(?:\s+of)?\s+{_MONTH.format('m1')},?\s+(?:of\s+)?"
            rf"{_YEAR.format('y1')}{_ERA.format('e1')}",
            rf"\b{_MONTH.format('m2')}\s+{_DAY.format('d2')}(?:\s+or\s+\d{{1,2}})?,?\s+(?:of\s+)?"
            rf"{_YEAR.format('y2')}{_ERA.format('e2')}",
            rf"\b{_MONTH.format('m3')},?\s+(?:of\s+)?{_YEAR.format('y3')}{_ERA.format('e3')}",
            r"\b(?P<y4>\d{4})-(?P<m4>\d{2})-(?P<d4>\d{2})(?!\d)",
            r"\b(?P<a5>\d{1,2})/(?P<b5>\d{1,2})/(?P<y5>\d{4})(?!\d)",
            rf"(?<![\d,.$€£/]){_YEAR.format('y6')}{_DECADE.format('s6')}{_ERA.format('e6')}",
            r"\b(?P<y7>\d{1,2})(?P<e7>\s*(?:BCE?|B\.\s?C\.))(?![a-zA-Z])",
            r"\b(?:AD|A\.D\.)\s*(?P<y8>\d{1,4})\b",
            r"\b(?P<c9>\d{1,2})(?:st|nd|rd|th)[\s-]century(?P<e9>\s*BCE?)?",
        )
    ),
    re.IGNORECASE,
)
_SHORT_YEAR_LEAD = re.compile(
    r"(?:\bc\.|\bca\.?|circa|\bAD|\bin|\byear|\b[bd]\.|born|died|about|around|before|after|from|to|until|since"
    r"|between|and|[-–—(])\s*$",
    re.IGNORECASE,
)


def _readable_year(match: re.Match[str]) -> bool:
    """A bare number of three digits is a year only where the words around it say so."""
    if match["y6"] is None or len(match["y6"]) == 4 or match["e6"]:
        return True
    before, after = match.string[: match.start()], match.string[match.end() :]
    alone = not before.strip("( ") and re.match(r"\s*(?:$|[-–—,;)]|to\b|until\b)", after)
    return bool(alone or _SHORT_YEAR_LEAD.search(before))


def _signed_year(match: re.Match[str]) -> int:
    if match["c9"]:
        century = int(match["c9"])
        return -century * 100 if match["e9"] else century * 100 - 99
    year = int(next(match[key] for key in ("y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8") if match[key]))
    return -year if any(match[key] for key in ("e1", "e2", "e3", "e6", "e7")) else year


def _month_and_day(match: re.Match[str]) -> tuple[int, int]:
    if match["a5"]:
        first, second = int(match["a5"]), int(match["b5"])
        return (second, first) if first > 12 else (first, second)  # month first, as in the United States, if both fit
    if match["m4"]:
        return int(match["m4"]), int(match["d4"])
    name = match["m1"] or match["m2"] or match["m3"]
    return (_MONTHS[name[:3].lower()] if name else 1), int(match["d1"] or match["d2"] or 1)


def _first_date(text: str) -> re.Match[str] | None:
    return next((match for match in _DATE.finditer(text) if _readable_year(match)), None)


def _build_date(match: re.Match[str], text: str) -> date:
    year = _signed_year(match)
    if not 1 <= year <= 9999:
        raise ValueError(f"{text!r} lies outside the calendar (years 1 to 9999): compare with parse_year instead")
    month, day = _month_and_day(match)
    month = min(max(month, 1), 12)
    return date(year, month, min(max(day, 1), calendar.monthrange(year, month)[1]))


class UnknownAnswerError(ValueError):
    """An answer that was not found is used as if it had been. The program is not wrong: evidence is lacking."""


def _found(value: T) -> T:
    """The value. Raises `UnknownAnswerError` for an answer that was not found."""
    if value is None or (isinstance(value, str) and str.__str__(value).strip() and not is_known(value)):
        raise UnknownAnswerError(
            "the answer to be read is unknown: test it with is_known(…) first, or find it another way"
        )
    return value


def parse_date(text: Datable) -> date:
    """The first date in a text; a missing month or day counts as 1. A range or "born – died" gives its start."""
    text = _found(text)
    if isinstance(text, date):
        return text
    match = _first_date(str(text))
    if match is None:
        raise ValueError(f"no date in {str(text)!r}: ask for the date again, or test with is_known() first")
    return _build_date(match, str(text))


def parse_year(text: Datable) -> int:
    """The first year in a text; years BC are negative, "18th century" is 1701."""
    text = _found(text)
    if isinstance(text, date):
        return text.year
    match = _first_date(str(text))
    if match is None:
        raise ValueError(f"no year in {str(text)!r}: ask for the date again, or test with is_known() first")
    return _signed_year(match)


def years_between(a: Datable, b: Datable) -> int:
    """Return the whole years between two dates, in either order: an age, a duration.

    Args:
        a: a date, or an answer that holds one.
        b: likewise.
    """
    first, last = sorted((parse_date(a), parse_date(b)))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


# Periods

_OPEN_END = re.compile(
    r"(?:[-–—]|\bto|\buntil|\bsince)\s*(?:the\s+)?(?:present|now|today|date|current|ongoing)\b|[-–—]\s*\)?$", re.I
)
_SHORT_END = re.compile(r"(\d{2})(\d{2})\s*[-–—/]\s*(\d{2})(?!\d)")


def parse_period(text: str | tuple[Datable, Datable] | date | int) -> Period:
    """Start and end of "1914–1938", "from 1921 to 44", "since 1990", "1990–present", a year, or a pair."""
    text = _found(text)
    if isinstance(text, tuple):
        return parse_date(text[0]), _last_day(text[1])
    if isinstance(text, date):
        return text, text
    whole = _SHORT_END.sub(r"\1\2–\1\3", str(text))
    dates = [match for match in _DATE.finditer(whole) if _readable_year(match)]
    start = parse_date(whole)
    if _OPEN_END.search(whole) or (len(dates) == 1 and re.search(r"\b(since|from|after)\b", whole, re.I)):
        return start, PRESENT
    return start, _close(dates[1] if len(dates) > 1 else dates[0], whole)


def _close(match: re.Match[str], text: str) -> date:
    day = _build_date(match, text)
    if match["d1"] or match["d2"] or match["d4"] or match["a5"]:
        return day
    year, month = day.year + (9 if match["s6"] else 0), day.month if match["m3"] else 12
    return date(year, month, calendar.monthrange(year, month)[1])


def _last_day(value: Datable) -> date:
    return value if isinstance(value, date) else parse_period(str(value))[1]


def overlap(a: str | tuple[Datable, Datable], b: str | tuple[Datable, Datable]) -> str:
    """Return the years two periods share, such as "1921–1938"; one year stands alone.

    Args:
        a: a period as text, or its two dates.
        b: likewise.

    Raises:
        ValueError: the periods never meet.
    """
    (start_a, end_a), (start_b, end_b) = parse_period(a), parse_period(b)
    start, end = max(start_a, start_b), min(end_a, end_b)
    if start > end:
        raise ValueError(f"{a!r} and {b!r} have no time in common: say so in the answer")
    if end == PRESENT:
        return f"{start.year}–present"
    return str(start.year) if start.year == end.year else f"{start.year}–{end.year}"


# Numbers

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
    """The first number in a text, in digits or words, with its scale ("1.18 trillion"); units are ignored."""
    text = _found(text)
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
    """The first number in a text in the base unit of its kind (kg, m, s …): 900 g is 0.9; other units are ignored."""
    number = parse_number(text)
    digits = _DIGITS.search(text) if isinstance(text, str) else None
    factor = unit_factor(text[digits.end() :]) if digits is not None and isinstance(text, str) else 1.0
    return number if factor == 1.0 else number * factor


def _exact(number: str) -> int | float:
    return float(number) if "." in number else int(number[:300])  # a longer one is no quantity, and int() is quadratic


def _spelled_number(text: str) -> tuple[int, int] | None:
    """Position and value of the first number in words: "two hundred and five"."""
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


# Names

_COUNTRIES: dict[str, str] = {}
for _line in (
    """
united states: us usa america american americans united_states_of_america u_s u_s_a
united kingdom: uk britain great_britain british briton u_k english scottish welsh northern_irish
germany: german west_germany east_germany west_german east_german federal_republic_of_germany nazi_germany
france: french kingdom_of_france|italy: italian kingdom_of_italy|spain: spanish|portugal: portuguese
netherlands: dutch holland kingdom_of_the_netherlands|belgium: belgian|luxembourg: luxembourgish
ireland: irish republic_of_ireland|austria: austrian|switzerland: swiss|denmark: danish kingdom_of_denmark
sweden: swedish|norway: norwegian|finland: finnish|iceland: icelandic|poland: polish|hungary: hungarian
czech republic: czech czechia|slovakia: slovak slovakian|czechoslovakia: czechoslovak czechoslovakian
romania: romanian|bulgaria: bulgarian|greece: greek|turkey: turkish|albania: albanian|serbia: serbian
croatia: croatian|slovenia: slovenian slovene|bosnia and herzegovina: bosnian bosnia|montenegro: montenegrin
yugoslavia: yugoslav yugoslavian|north macedonia: macedonian macedonia|kosovo: kosovan|ukraine: ukrainian
belarus: belarusian|moldova: moldovan|russia: russian russian_federation russian_empire
soviet union: soviet ussr u_s_s_r|lithuania: lithuanian|latvia: latvian|estonia: estonian|georgia: georgian
armenia: armenian|azerbaijan: azerbaijani|kazakhstan: kazakh kazakhstani|uzbekistan: uzbek
china: chinese people_s_republic_of_china prc|taiwan: taiwanese republic_of_china|hong kong: hongkonger
japan: japanese empire_of_japan|south korea: south_korean korean republic_of_korea korea|north korea: north_korean
mongolia: mongolian|vietnam: vietnamese|thailand: thai|malaysia: malaysian|singapore: singaporean
indonesia: indonesian|philippines: filipino philippine filipina|cambodia: cambodian|myanmar: burmese burma
india: indian british_india|pakistan: pakistani|bangladesh: bangladeshi|sri lanka: sri_lankan|nepal: nepali nepalese
afghanistan: afghan|iran: iranian persian persia|iraq: iraqi|israel: israeli|lebanon: lebanese|syria: syrian
jordan: jordanian|saudi arabia: saudi saudi_arabian|egypt: egyptian|morocco: moroccan|algeria: algerian
tunisia: tunisian|libya: libyan|sudan: sudanese|ethiopia: ethiopian|kenya: kenyan|tanzania: tanzanian
uganda: ugandan|nigeria: nigerian|ghana: ghanaian|senegal: senegalese|cameroon: cameroonian|angola: angolan
south africa: south_african|zimbabwe: zimbabwean|zambia: zambian|somalia: somali|canada: canadian|mexico: mexican
cuba: cuban|jamaica: jamaican|haiti: haitian|dominican republic: dominican|puerto rico: puerto_rican
brazil: brazilian|argentina: argentine argentinian|chile: chilean|peru: peruvian|colombia: colombian
venezuela: venezuelan|ecuador: ecuadorian|bolivia: bolivian|uruguay: uruguayan|paraguay: paraguayan
costa rica: costa_rican|panama: panamanian|guatemala: guatemalan|cape verde: cape_verdean|cyprus: cypriot
malta: maltese|monaco: monegasque|australia: australian|new zealand: new_zealander|fiji: fijian
trinidad and tobago: trinidadian
""".strip()
    .replace("|", "\n")
    .splitlines()
):
    _name, _, _forms = _line.partition(": ")
    _COUNTRIES |= {form.replace("_", " "): _name for form in (_name, *_forms.split())}
_MAX_COUNTRY = max(len(name.split()) for name in _COUNTRIES)
_NATIONS = {"england", "scotland", "wales", "northern ireland"}
_ARTICLES = {"the", "a", "an"}
_DISTINGUISHING = re.compile(  # words that make another name of a name: South Sudan, Henry IV
    r"new|(?:north|south|east|west)(?:ern)?|central|lower|upper|papua|jr|sr|junior|senior|equatorial|little|great(?:er)?"
    r"|[ivx]+|\d+(?:st|nd|rd|th)?"
)


def _tokens(text: str) -> list[str]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    plain = plain.translate({ord("ł"): "l", ord("ø"): "o", ord("đ"): "d", ord("ı"): "i", ord("&"): " and "})
    words = re.findall(r"\w+", re.sub(r"\([^)]*\)", " ", plain)) or re.findall(r"\w+", plain)
    return [word for word in words if word not in _ARTICLES] or words


def countries(text: str) -> set[str]:
    """The countries that a text names, by noun or adjective, under one name each; empty if none is known."""
    words, found, at = _tokens(text), set(), 0
    while at < len(words):
        for size in range(min(_MAX_COUNTRY, len(words) - at), 0, -1):
            name = _COUNTRIES.get(" ".join(words[at : at + size]))
            if name or " ".join(words[at : at + size]) in _NATIONS:
                found.add(name or " ".join(words[at : at + size]))
                at += size - 1
                break
        at += 1
    return found


def same_entity(a: str, b: str) -> bool:
    """Return whether two texts name the same thing, as far as spelling can tell.

    Case, accents, articles, punctuation and remarks in brackets do not matter; "U.S.", "American" and "United
    States" are one country; part of a name ("Elvis") and part of a place ("Paris" in "Paris, France") are enough.
    Texts of several countries match if they share one. An empty text matches nothing.

    Args:
        a: a name, or an answer that holds one.
        b: likewise.
    """
    return same_name(_found(a), _found(b))


def same_name(a: str, b: str) -> bool:
    """Compare two texts like `same_entity`, without looking for the answer in them.

    Args:
        a: a name.
        b: likewise.
    """
    if not (a.strip() and b.strip()):
        return False
    words_a, words_b = _tokens(a), _tokens(b)
    if not words_a or not words_b:
        return a.strip() == b.strip()
    if words_a == words_b:
        return True
    if _only_countries(a) and _only_countries(b):
        return _share_country(countries(a), countries(b))
    parts_a, parts_b = _parts(a), _parts(b)
    if len(parts_a) > 1 or len(parts_b) > 1:
        return _same_place(parts_a, parts_b)
    return _part_of_name(words_a, words_b)


def _only_countries(text: str) -> bool:
    words = " ".join(_tokens(text))
    for form in sorted(_COUNTRIES, key=len, reverse=True) if countries(text) else ():
        words = re.sub(rf"\b{re.escape(form)}\b", " ", words)
    return bool(countries(text)) and set(words.split()) <= {
        "and",
        "born",
        "citizen",
        "nationality",
        "of",
        "then",
        *_NATIONS,
        "northern",
    }


def _share_country(a: set[str], b: set[str]) -> bool:
    british = {"united kingdom"}
    return bool(a & b) or (a == british and b <= _NATIONS) or (b == british and a <= _NATIONS)


def _parts(text: str) -> list[tuple[str, ...]]:
    parts = [tuple(_tokens(part)) for part in text.split(",")]
    return [(_COUNTRIES.get(" ".join(part), " ".join(part)),) for part in parts if part]


def _same_place(a: list[tuple[str, ...]], b: list[tuple[str, ...]]) -> bool:
    return set(a) <= set(b) or set(b) <= set(a)


def _part_of_name(a: list[str], b: list[str]) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    rest = [word for word in large if word not in small]
    if any(_DISTINGUISHING.fullmatch(word) for word in rest):
        return False
    remaining = iter(large)
    in_order = all(any(_same_word(word, other) for other in remaining) for word in small)
    return in_order and not any(len(words) == 1 and len(words[0]) == 1 for words in (a, b))  # a letter is no name


def _same_word(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) == 1 and a[0] == b[0])


# Lists


def split_list(text: str) -> list[str]:
    """The items of "A, B and C"; each once, in order."""
    items = re.split(r"\s*[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|&)\s+", str(text).strip())
    return list(dict.fromkeys(item for item in items if item))


def common(a: str, b: str) -> list[str]:
    """Return the items two lists ("A, B and C") share, in the spelling and order of the first; empty if none.

    Args:
        a: an enumeration as text.
        b: likewise.
    """
    others = split_list(_found(b))
    return [item for item in split_list(_found(a)) if any(same_name(item, other) for other in others)]


def is_known(answer: object) -> bool:
    """False for an answer that was not found, and for a text that says so in any words, None included."""
    known = getattr(answer, "known", None)
    if isinstance(known, bool):
        return known
    text = str(answer).strip()
    return text.casefold() not in ("", "none") and not (any(map(str.isalnum, text)) and is_unknown(text))


ERRORS: dict[str, type[Exception]] = {"UnknownAnswerError": UnknownAnswerError}
HELPERS: dict[str, Callable[..., object]] = {
    "parse_date": parse_date,
    "parse_year": parse_year,
    "parse_number": parse_number,
    "parse_quantity": parse_quantity,
    "years_between": years_between,
    "overlap": overlap,
    "same_entity": same_entity,
    "common": common,
    "is_known": is_known,
}
