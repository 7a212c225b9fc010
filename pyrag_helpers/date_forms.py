"""Forms of dates in many languages, found in a text and read as a whole.

A day followed by a word and a year ("12 xyz 1921") is a date in an unknown language. It is returned as an unreadable
date, so that no part of it is mistaken for the date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from pyrag_helpers.months import MONTHS, month_of, plain_word
from pyrag_helpers.numerals import plain_digits

_WORD = r"(?:[^\W\d_]|[\u0300-\u036f\u0e31-\u0e4e\u0900-\u0963])+"
_SUFFIX = r"(?:st|nd|rd|th|er|ère|e|º|°|ª|\.º|-?го|-?е|-?ого)?"
_DAY = rf"(?P<day>\d{{1,2}}){_SUFFIX}\.?"
_TO = r"(?:\s*[-–—/]\s*|\s+(?:to|until|till|and|or|bis|und|oder|et|ou|au|al|y|e|en|tot|и|по)\s+)"
_DAYS = rf"(?:{_TO}\d{{1,2}}{_SUFFIX}\.?(?!\d))?"  # end of a range of days
_OF = r"(?:\s+(?:of|de|del|do|di|van)(?![^\W\d_]))?"
_YEAR = r"(?P<year>\d{3,4})(?!\d)(?!,\d{3})"
_BC = (
    r"BCE?|B\.\s?C\.(?:\s?E\.)?|v\.?\s?Chr|av\.?\s?J\.?-?C|a\.\s?C\.|v\.\s?C"
    r"|до н\.?\s?э|п\.\s?н\.\s?э|p\.\s?n\.\s?e|f\.\s?Kr"
)
_ERA = rf"(?:\s*(?P<era>{_BC})\.?)?(?![^\W\d_])"
_MONTHS = rf"(?P<month>{_WORD})(?![^\W\d_])\.?"
_TO_OTHER = rf"(?:{_TO}(?:\d{{1,2}}{_SUFFIX}\.?{_OF}\s+)?{_WORD}\.?)?"  # end of a range: "12 May – 3 June 1987"
_NO_MONTHS = """
in by from since until till and or to of on at for the was is are were around about circa after before between per with
born died people men women years days times en im um bis seit vor nach und von dans depuis el del al nel dal fra tot
sinds до от century
"""  # words that stand between a number and a year
_IS_NO_MONTH = frozenset(_NO_MONTHS.split())


@dataclass(frozen=True, slots=True)
class DateForm:
    """Date in a text. Parts that the text omits are 0.

    Attributes:
        year: The year, negative for years BC.
        month: Number of the month.
        day: Day of the month.
        start: Position of the first character.
        end: Position after the last character.
        span: Number of years that the date covers: 10 for a decade, 100 for a century.
        problem: Reason why the date cannot be read; empty if it can.
    """

    year: int
    month: int
    day: int
    start: int
    end: int
    span: int = 1
    problem: str = ""


def find_dates(text: str) -> tuple[DateForm, ...]:
    """Return the dates of a text in order, each as a whole.

    Args:
        text: The text.
    """
    return _find_dates(plain_digits(text))


@lru_cache(maxsize=256)
def _find_dates(plain: str) -> tuple[DateForm, ...]:
    forms = [form for pattern, read in _READERS for match in pattern.finditer(plain) if (form := read(match))]
    dates: list[DateForm] = []
    for form in sorted(forms, key=lambda form: (form.start, -form.end, bool(form.problem))):
        if not dates or form.start >= dates[-1].end:
            dates.append(form)
        elif form.end > dates[-1].end and form.month and not dates[-1].month:
            dates[-1] = form
    return tuple(dates)


def _year(match: re.Match[str]) -> int:
    year = int(match["year"])
    return -year if match.groupdict().get("era") else year


def _form(match: re.Match[str], month: int, day: int, problem: str = "") -> DateForm:
    is_zero = (match.groupdict().get("day") and not day) or (match.groupdict().get("month") and not month)
    if not problem and (is_zero or not _exists(_year(match), month, day)):
        problem = "there is no such day"
    return DateForm(_year(match), month, day, match.start(), match.end(), problem=problem)


def _exists(year: int, month: int, day: int) -> bool:
    """Return whether a day is in the calendar. 29 February 1900 is in the Julian calendar."""
    if month > 12 or (month and day > (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]):
        return False
    return not (month == 2 and day == 29 and year % 4)


def _in_words(match: re.Match[str]) -> DateForm | None:
    """Read "7 May 1987", "7. Mai 1987", "21 de junio de 1902"."""
    month, day = month_of(match["month"]), int(match["day"])
    if month:
        return _form(match, month, day)
    word = plain_word(match["month"])
    if 0 < day <= 31 and len(word) > 2 and word not in _IS_NO_MONTH and not match["comma"]:
        return _form(match, 0, 0, f"the month {match['month']!r} is not known")
    return None


def _with_marks(match: re.Match[str]) -> DateForm | None:
    """Read "12-Sep-2001", "Sep-12-2001", "2001-Sep-12" and "12Sep2001"."""
    month = month_of(match["month"])
    return _form(match, month, int(match["day"])) if month else None


_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "fifth": 5, "sixth": 6}


def _part_of_year(match: re.Match[str]) -> DateForm | None:
    """Read "Q2 2024", "2024-Q2", "the second quarter of 2024" and "H2 2024" as the part's first month."""
    parts = {name: text for name, text in match.groupdict().items() if text}
    name = parts.get("part", "q").lower()[0]
    number = int(parts["digit"]) if "digit" in parts else _ORDINALS[parts["word"].lower()]
    if "last" in parts.get("word", "").lower() and name == "h":
        number = 2
    months, last = (3, 4) if name == "q" else (6, 2)
    if not 0 < number <= last:
        return _form(match, 0, 0, "a year has no such part")
    return _form(match, months * (number - 1) + 1, 0)


_WEEK = r"KW|CW|W|wk\.?|weeks?|Woche|semaine|semana|settimana"


def _week(match: re.Match[str]) -> DateForm | None:
    """Refuse "week 5 of 2024", so that the year is not read as the date."""
    return _form(match, 0, 0, "it names a week")


def _cut(match: re.Match[str]) -> DateForm | None:
    """Refuse figures beside a year, as in "2024-5" and "25 5 2024", of which only the year could be read."""
    year = next(int(text) for name, text in match.groupdict().items() if name.startswith("year") and text)
    return DateForm(year, 0, 0, match.start(), match.end(), problem="only its year can be read")


def _month_first(match: re.Match[str]) -> DateForm | None:
    month = month_of(match["month"])
    return _form(match, month, int(match["day"])) if month else None


def _year_first(match: re.Match[str]) -> DateForm | None:
    month = month_of(match["month"], short=False)
    return _form(match, month, int(match["day"])) if month and int(match["day"]) else None


def _month_only(match: re.Match[str]) -> DateForm | None:
    """Read "May 1987". Only English abbreviations are accepted, and "Mars 2020" is a mission, not a date."""
    word = match["month"]
    known = month_of(word, short=False) if plain_word(word) in MONTHS else _ENGLISH.get(plain_word(word), 0)
    return None if not known or (word == "Mars") else _form(match, known, 0)


_SHORT = "jan feb mar apr _ jun jul aug sep oct nov dec"
_ENGLISH = {"sept": 9} | {name: number for number, name in enumerate(_SHORT.split(), 1)}


def _numeric(match: re.Match[str]) -> DateForm | None:
    """Read "31/12/1999", "12/31/1999" and "31.12.1999". In forms with points, the day comes first."""
    first, second = int(match["first"]), int(match["second"])
    if not first or not second:
        return _form(match, 0, 0, "there is no such day")
    if match["mark"] == "." or first > 12 or first == second:
        return _form(match, second, first)
    if second > 12:
        return _form(match, first, second)
    return _form(match, 0, 0, "day and month may be either way round")


_CLOCK = re.compile(r"[T\s](?P<hour>\d{1,2}):(?P<minute>\d{2})(?!\d)")


def _iso(match: re.Match[str]) -> DateForm | None:
    clock = _CLOCK.match(match.string, match.end())
    is_time = clock is None or (int(clock["hour"]) <= 24 and int(clock["minute"]) < 60)
    return _form(match, int(match["month"]), int(match["day"]), "" if is_time else "there is no such time")


_NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_ROMAN = {name: number for number, name in enumerate(_NUMERALS, 1)}


def _roman(match: re.Match[str]) -> DateForm | None:
    """Read "12.V.2001"."""
    return _form(match, _ROMAN.get(match["month"], 0), int(match["day"]))


def _year_and_month(match: re.Match[str]) -> DateForm | None:
    """Read "2021-10"; "2005-06" may also mean two years."""
    month, year = int(match["month"]), int(match["year"])
    if not 0 < month <= 12:
        return None
    if match["mark"] == "-" and month > year % 100:
        return _form(match, 0, 0, "it may be a month or a range of years")
    return _form(match, month, 0)


def _eastern(match: re.Match[str]) -> DateForm | None:
    """Read "1987年5月7日" and "1987년 5월"."""
    year = -int(match["year"]) if match["before"] else int(match["year"])
    month, day = int(match["month"] or 0), int(match["day"] or 0)
    problem = "" if _exists(year, month, day) else "there is no such day"
    return DateForm(year, month, day, match.start(), match.end(), problem=problem)


def _two_figures(match: re.Match[str]) -> DateForm | None:
    return DateForm(1, 0, 0, match.start(), match.end(), problem="its year has two figures")


def _year_only(match: re.Match[str]) -> DateForm | None:
    if not _is_readable(match):
        return None
    return DateForm(_year(match), 0, 0, match.start(), match.end(), 10 if match["decade"] else 1)


def _early_year(match: re.Match[str]) -> DateForm | None:
    return DateForm(_year(match), 0, 0, match.start(), match.end())


def _century(match: re.Match[str]) -> DateForm | None:
    century = int(match["year"])
    first = -century * 100 if match["era"] else century * 100 - 99
    return DateForm(first, 0, 0, match.start(), match.end(), 100)


_LEAD = re.compile(
    r"(?:\bc\.|\bca\.?|circa|\bAD|\bin|\byear|\b[bd]\.|born|died|about|around|before|after|from|to|until|since"
    r"|between|and|[-–—(])\s*$",
    re.IGNORECASE,
)


def _is_readable(match: re.Match[str]) -> bool:
    """Return True if the number can be a year. A number with three digits needs context that shows that it is one."""
    if len(match["year"]) == 4 or match["era"]:
        return True
    before, after = match.string[: match.start()], match.string[match.end() :]
    stands_free = not before.strip("( ") and re.match(r"\s*(?:$|[-–—,;)]|to\b|until\b)", after)
    return bool(stands_free or _LEAD.search(before))


_Read = Callable[[re.Match[str]], DateForm | None]


def _readers() -> Iterator[tuple[re.Pattern[str], _Read]]:
    end = r"(?:,|\s+(?:of|de|del|do)(?![^\W\d_]))?\s*,?\s*(?:in\s+the\s+year\s+)?"
    year = r"(?P<year>\d{4})(?!\d)"
    patterns: tuple[tuple[str, _Read], ...] = (
        (rf"\b{_DAY}{_DAYS}{_OF}\s*{_MONTHS}(?P<comma>,)?{_TO_OTHER}{end}\b{_YEAR}{_ERA}", _in_words),
        (rf"\b{_MONTHS}\s+(?:the\s+)?{_DAY}{_DAYS}{_TO_OTHER}{end}\b{_YEAR}{_ERA}", _month_first),
        (rf"\b(?P<year>\d{{3,4}})[.,]?(?:\s*(?:m\.|gada))?\s+{_MONTHS}\s*{_DAY}(?!\d)", _year_first),
        (rf"\b{_MONTHS}(?:{_TO}{_WORD}(?![^\W\d_])\.?)?{end}\b{_YEAR}{_ERA}", _month_only),
        (rf"\b(?P<day>\d{{1,2}})(?P<comma>[-/])(?P<month>{_WORD})(?P=comma)(?P<year>\d{{4}})(?!\d)", _with_marks),
        (rf"\b(?P<month>{_WORD})(?P<comma>[-/])(?P<day>\d{{1,2}})(?P=comma){year}", _with_marks),
        (rf"\b(?P<year>\d{{4}})(?P<comma>[-/])(?P<month>{_WORD})(?P=comma)(?P<day>\d{{1,2}})(?!\d)", _with_marks),
        (rf"(?<![\d.,])(?P<day>\d{{1,2}})(?P<month>[^\W\d_]{{3,9}}){year}", _with_marks),
        (rf"\b(?P<day>\d{{1,2}})(?P<comma>[.\s])\s?(?P<month>(?-i:[IVX]{{1,4}}))(?P=comma)\s?{year}", _roman),
        (rf"\b(?P<part>[QH])(?P<digit>\d)(?:\s+of)?[\s/-]*{year}", _part_of_year),
        (r"\b(?P<year>\d{4})[\s-]?(?P<part>[QH])(?P<digit>\d)(?!\w)", _part_of_year),
        (
            rf"\b(?P<word>{'|'.join(_ORDINALS)})\s+(?P<part>quarter|half)\s+(?:of|in)\s+(?:the\s+year\s+)?{year}",
            _part_of_year,
        ),
        (rf"\b(?:{_WEEK})\s?\d{{1,2}}(?:\s+(?:of|in|de|von))?[\s,/-]*{year}", _week),
        (rf"\b(?P<year>\d{{4}})[\s,-]*(?:{_WEEK})\s?\d{{1,2}}(?!\d)", _week),
        (
            rf"(?<![\d.])\d{{1,2}}[\s/]\d{{1,2}}\s{year}|\b\d{{3,}}(?P<mark>[-/.])\d{{1,2}}(?P=mark)(?P<year_2>\d{{4}})(?!\d)",
            _cut,
        ),
        (r"\b(?P<year>\d{4})(?:\s\d{1,2}\s\d{1,2}(?!\d)|[-/]\d(?![-/.]?\d)|-\d{1,2}-(?:\d{3}|[^\W\d_]))", _cut),
        (r"\b(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!\d)", _iso),
        (
            r"(?<![\d./-])(?P<first>\d{1,2})(?P<mark>[./-])\s?(?P<second>\d{1,2})(?P=mark)\s?(?P<year>\d{4})(?!\d)",
            _numeric,
        ),
        (r"(?<![\d./-])\d{1,2}([./-])\d{1,2}\1\d{2}(?![\d./-])", _two_figures),
        (r"(?<![\d./-])(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{2})(?![\d./-])", _year_and_month),
        (r"(?<![\d./-])(?P<month>0\d|1[0-2])(?P<mark>[./])(?P<year>\d{4})(?![\d./-])", _year_and_month),
        (
            r"(?P<before>公元前|紀元前|기원전)?\s?(?P<year>\d{3,4})\s*[年년](?:\s?[（(][^（）()]{0,12}[)）])?"
            r"(?:\s*(?P<month>\d{1,2})\s*[月월](?:\s*(?P<day>\d{1,2})\s*[日号號일])?)?",
            _eastern,
        ),
        (r"\b(?P<day>\d{1,2})\s+tháng\s+(?P<month>\d{1,2})(?:,|\s+năm)?\s+(?P<year>\d{4})(?!\d)", _iso),
        (rf"(?<![\d,.$€£/]){_YEAR}(?P<decade>'?s\b|er\b|-х\b)?{_ERA}", _year_only),
        (rf"\b(?P<year>\d{{1,2}})\s*(?P<era>{_BC})(?![a-zA-Z])", _early_year),
        (r"\b(?:AD|A\.D\.)\s*(?P<year>\d{1,4})\b", _early_year),
        (r"\b(?P<year>\d{1,2})(?:st|nd|rd|th)[\s-]century(?P<era>\s*BCE?)?", _century),
    )
    for pattern, read in patterns:
        bounded = pattern.replace(r"\s*", r"\s{0,3}").replace(r"\s+", r"\s{1,3}")  # linear in long white space
        yield re.compile(bounded, re.IGNORECASE), read


_READERS = tuple(_readers())
