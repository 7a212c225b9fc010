"""Check of an answer's kind: a city does not answer "who", and a person does not answer "the title of".

An answer is rejected only if it or its sentence shows that it is of another kind.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re

from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.measures import MEASURED, NUMBER_WORDS
from pyrag.embedded.lexicon.people import HONORIFICS, PERSON_ROLES
from pyrag.embedded.lexicon.regions import CONTINENTS, COUNTRIES, STATES
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.word_classes import OPENING_AUXILIARY
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence, fold
from pyrag.trace.sentences import UPPER_CLASS

_PLACES = frozenset(fold(name) for name in (*COUNTRIES, *STATES, *CONTINENTS))
_DATED = re.compile(
    rf"\d|\b(?:{MONTHS})\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:century|spring|summer|autumn|winter|morning"
    r"|afternoon|evening|night|noon|midnight|today|tomorrow|yesterday|daily|weekly|yearly|annually|monthly|week|month|year"
    r"|decade|easter|christmas|after|before|during|when|until|since|while|once|always|never|early|late|age)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    rf"\d|\b(?:{'|'.join(sorted(NUMBER_WORDS))}|several|many|few|none|no|all|both|some|hundreds|thousands|millions|dozens|pair"
    r"|couple|single|most|half|quarter|third|twice|double|overnight|day|week|month|year|hours?|free)\b",
    re.IGNORECASE,
)
_IS_NUMBER = re.compile(
    r"[\d.,:/%€$£–-]+(?: ?(?:%|[a-zµ]{1,3}|euros?|dollars?|people|years?|months?|days?|hours?|minutes?))?"
)
_ASKS_WHEN = re.compile(rf"when {OPENING_AUXILIARY}\b")
_IN_PLACE = re.compile(r"\b(?:in|near|at|from|to|into|around|outside)\s+(?:the )?$")
_DOES = re.compile(
    r"\s+(?:was|is|has|had|who|founded|wrote|led|joined|started|created|won|said|became|made|and|[a-z]+ed)\b"
)
_FULL_NAME = re.compile(
    rf"(?:[{UPPER_CLASS}][\w'’-]+|[{UPPER_CLASS}]\.)(?: (?:de|van|von|der|la|al|bin)| [{UPPER_CLASS}][\w'’.-]*)+"
)
_MAKER = re.compile(
    r"\b(?:by|author|writer|novelist|poet|director|composer|singer|artist|playwright|editor|engineer)\s+(?:[A-Z][\w.]+ )?$"
)
_ROLE = any_of(PERSON_ROLES)
_TITLED = re.compile(r"\b(?:title|name) of (?:the |his |her |its )?(?:[\w-]+ )?(?:film|movie|song|album|book|novel|show|play|poem|paper|report|talk)\b"
                     r"|\btitle of\b|\bcalled\b|\bentitled\b", re.IGNORECASE)  # fmt: skip
_MEASURED = re.compile(rf"\bhow (?:often|{any_of(MEASURED)})\b", re.IGNORECASE)
_UNITS = {
    "heavy": ("mass", "weigh", "how heavy"),
    "length": ("how tall", "how high", "how deep", "how wide", "how thick", "how far"),
    "money": ("cost", "price", "how expensive", "fee"),
}
_UNIT_OF = {
    "heavy": re.compile(r"\d\s?(?:kg|g|mg|t|lbs?|oz|tonnes?|tons?|pounds?|grams?|kilos?|kilograms?|stone|ounces?)\b", re.I),
    "length": re.compile(r"\d\s?(?:km|m|cm|mm|ft|in|mi|feet|foot|inch(?:es)?|miles?|yards?|(?:kilo|centi|milli)?met(?:re|er)s?)\b", re.I),
    "money": re.compile(r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|euros?|dollars?|pounds?|eur|usd|gbp|cents?|francs?|crowns?|kronor)\b", re.I),
    "time": re.compile(r"\d\s?(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|min|h|s)\b", re.I),
}  # fmt: skip


def other_kind(analysis: QuestionAnalysis, page: View, sentence: Sentence, answer: str) -> str:
    """Return a reason if an answer is not the kind of thing that the question asks for, else "".

    Args:
        analysis: Analysis of the question.
        page: Page of the answer.
        sentence: Sentence of the answer.
        answer: Answer as it is in the sentence.
    """
    wh = analysis.wh
    if wh in ("who", "whom", "whose") and analysis.kind in ("person", "organisation", "thing"):
        return _not_person(sentence, answer)
    question = analysis.question.lower()
    if _ASKS_WHEN.match(question) and not _DATED.search(answer):
        return "no time is named"
    if wh in ("how many", "how old") and not _COUNTED.search(answer):
        return "no number is named"
    if question.startswith("where ") and (_IS_NUMBER.fullmatch(answer) or _has_title(answer)):
        return "no place is named"
    if _TITLED.search(analysis.question) and _is_maker(page, sentence, answer):
        return "a person is not a title"
    return _other_measure(analysis, answer)


def _before(sentence: Sentence, answer: str) -> str:
    """Return the text before an answer in its sentence."""
    at = sentence.text.find(answer)
    return sentence.text[:at] if at > 0 else ""


def _not_person(sentence: Sentence, answer: str) -> str:
    """Return a reason if an answer is a number, a date or a place, else ""."""
    if _IS_NUMBER.fullmatch(answer) or not re.search(r"[^\W\d_]{2}", answer):
        return "a number is not a person"
    if re.fullmatch(rf"(?:\d{{1,2}} )?(?:{MONTHS})(?: \d{{1,4}})?(?:, \d{{4}})?", answer):
        return "a date is not a person"
    if fold(answer) in _PLACES:
        return "a place is not a person"
    before = _before(sentence, answer)
    after = sentence.text[len(before) + len(answer) :]
    name = re.match(rf"[{UPPER_CLASS}][\w'’-]*(?:, [{UPPER_CLASS}][\w'’-]*)?$", answer)
    if (
        name
        and _IN_PLACE.search(before)
        and not _DOES.match(after)
        and not re.search(r"\bled to|came to|next to", before)
    ):
        return "a place is not a person"
    return ""


def _has_title(answer: str) -> bool:
    """Return whether an answer is a name with a title such as "Dr"."""
    first = answer.split()[0].lower().strip(".") if answer.split() else ""
    return first in HONORIFICS - {"st", "saint", "hon"} and " " in answer and first in ("mr", "mrs", "ms", "dr", "prof")


def _is_maker(page: View, sentence: Sentence, answer: str) -> bool:
    """Return whether the page shows that an answer is a person, such as an author or a painter."""
    if not _FULL_NAME.fullmatch(answer) or re.search(rf"[\"“‘']{re.escape(answer)}", sentence.text):
        return False
    if _MAKER.search(_before(sentence, answer)):
        return True
    is_role = re.compile(
        rf"{re.escape(answer)}(?: \([^)]*\))? (?:is|was) (?:an?|the) (?:[\w-]+ ){{0,4}}?{_ROLE}\b", re.IGNORECASE
    )
    return any(is_role.search(line.text) for line in page.sentences) or _wrote(page, answer)


def _wrote(page: View, answer: str) -> bool:
    """Return whether the page attributes to an answer something that only people do, such as writing."""
    deed = re.compile(
        rf"{re.escape(answer)},? (?:who )?(?:wrote|writes|said|says|was born|died|lives|studied|published|designed|directed|composed)\b"
    )
    return any(deed.search(line.text) for line in page.sentences)


def _other_measure(analysis: QuestionAnalysis, answer: str) -> str:
    """Return a reason if a question asks for a measure such as a weight, and the answer has none, else ""."""
    question = analysis.question.lower()
    if analysis.wh not in ("how", "how much", "how long", "what") or not re.search(r"\d", answer):
        return "no number is named" if _MEASURED.search(question) and not _COUNTED.search(answer) else ""
    asked_kind = next(
        (kind for kind, cues in _UNITS.items() if any(re.search(rf"\b{cue}", question) for cue in cues)), ""
    )
    if not asked_kind or _UNIT_OF[asked_kind].search(answer):
        return ""
    other = next((kind for kind, unit in _UNIT_OF.items() if kind != asked_kind and unit.search(answer)), "")
    return f"a measure of {other} is not asked for" if other and _asks_only(asked_kind, question) else ""


def _asks_only(kind: str, question: str) -> bool:
    """Return whether an answer in another unit is wrong.

    "How far" and "how long" may be answered by a time as well as by a length.
    """
    return not (kind == "length" and re.search(r"\bhow far\b", question)) and not re.search(r"\bhow long\b", question)
