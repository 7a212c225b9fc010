"""Dates and places of a person's life: birth, death, burial, and the cause of death.

These facts are read from the brackets after the name and from plain sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.embedded.lexicon.regions import CONTINENTS, COUNTRIES, PEOPLES, STATES
from pyrag.embedded.lexicon.times import MONTH_NAMES
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.patterns import ALL_DATES, BORN, CAUSE, DIED, DIED_OF, NAME, PLACE, SPLIT, VIOLENT
from pyrag.embedded.reader.people import PageFact
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence

_MAX_START = 250  # characters before the brackets that hold a person's dates


def brackets(sentence: Sentence) -> Iterator[tuple[int, str]]:
    """Yield the outermost bracketed parts of a sentence, each with the position of its first character."""
    depth, start = 0, 0
    for index, char in enumerate(sentence.text):
        if char == "(":
            depth += 1
            start = index + 1 if depth == 1 else start
        elif char == ")" and depth:
            depth -= 1
            if depth == 0:
                yield start, sentence.text[start:index]


def _life_parts(page: View) -> tuple[str, str]:
    """Return the parts about birth and death in the brackets after a person's name."""
    bracketed = [pair for sentence in page.sentences[:2] for pair in brackets(sentence)]
    ranges = [pair for pair in bracketed if len(ALL_DATES.findall(pair[1])) > 1 and SPLIT.search(pair[1])]
    for start, inside in (*ranges[:1], *bracketed):
        if start > _MAX_START or not (ALL_DATES.search(inside) or re.match(r"\s*(?:born|b\.|died)", inside)):
            continue
        if re.match(r"\s*(?:died|d\.)", inside):
            return "", inside
        parts = [part for part in SPLIT.split(inside) if part]
        with_date = [part for part in parts if ALL_DATES.search(part) or "present" in part]
        if len(with_date) >= 2:
            return with_date[0], with_date[1]
        return inside, ""
    return "", ""


def first_date(text: str, year_only: bool) -> str:
    """Return the first date in a text, or "" if it has no date.

    Args:
        text: Part of a sentence.
        year_only: Whether to return only the year, if the date has a year.
    """
    match = ALL_DATES.search(text)
    if not match:
        return ""
    date = re.sub(r"\s+", " ", match.group()).strip()
    year = re.search(r"\d{3,4}(?:\s?BCE?)?", date) if year_only else None
    return year.group() if year else date


def _place_in(text: str) -> str:
    """Return the first place in a text: a name at its start, after a comma, or after "in", "at", "near"."""
    for match in re.finditer(r"(?:\b(?:in|at|near|from|of)\s+|^|,\s*|\)\s*)", text):
        place = PLACE.match(text, match.end())
        if (
            place
            and place.group(1).split(",")[0].strip() not in PEOPLES
            and place.group(1).split()[0].strip(",") not in MONTH_NAMES
            and not place.group(1).startswith(("AD ", "BC"))
        ):
            return place.group(1)
    return ""


def pick_place(place: str, kind: str) -> str:
    """Return the part of a place such as "Bonn, Hesse, Germany" that a question asks for.

    Args:
        place: Names of places separated by commas, the smallest first.
        kind: Kind of answer: "country", "state", "continent" or "county". Any other kind means the first part.

    Returns:
        The part, or "" if the place has no part of this kind.
    """
    parts = [part.strip().rstrip(".-") for part in place.split(",")]
    names = {"country": COUNTRIES, "state": STATES, "continent": CONTINENTS}.get(kind)
    if names is not None:
        return next((part for part in reversed(parts) if part.removeprefix("the ") in names), "")
    if kind == "county":
        return next((part for part in parts if part.endswith("County") or part.startswith("County")), "")
    return parts[0]


def _about_subject(sentence: Sentence, position: int, page: View) -> float:
    """Return the certainty that the words at a position are about the page's subject, not about a relative."""
    before = sentence.text[:position].strip()
    words = re.findall(r"\w+", before)
    if (
        not words
        or words[0] in ("He", "She", "It", "They", "Born", "Originally")
        or words[-1].lower() in ("he", "she", "it", "who", "and", "was")
    ):
        return 1.0
    title_words = set(re.findall(r"\w+", page.base))
    return 0.95 if set(words) & title_words or sentence.index == 0 else 0.6


def life_date(page: View, analysis: QuestionAnalysis, death: bool) -> Iterator[PageFact]:
    """Find a person's date of birth or death, in the brackets after the name and within 120 characters after a verb.

    Args:
        page: Page of the person.
        analysis: Analysis of the question, which may ask for the year only.
        death: Whether to find the date of death instead of birth.
    """
    born, died = _life_parts(page)
    text = first_date(died if death else born, analysis.year_only)
    if text:
        yield PageFact(text, 1.0, 0, "the dates after the name")
    pattern = re.compile(
        r"\b(?:died|killed|murdered|assassinated|executed|passed away|death)\b" if death else r"\b(?:born|birth)\b"
    )
    for sentence in page.sentences:
        for match in pattern.finditer(sentence.text):
            text = first_date(sentence.text[match.end() : match.end() + 120], analysis.year_only)
            if text:
                yield PageFact(text, 0.9 * _about_subject(sentence, match.start(), page), sentence.index, match.group())


def life_place(page: View, analysis: QuestionAnalysis, death: bool) -> Iterator[PageFact]:
    """Find a person's place of birth or death, in the brackets after the name and within 160 characters after a verb.

    Args:
        page: Page of the person.
        analysis: Analysis of the question, whose kind of answer determines which part of a place to return, such as the
            country.
        death: Whether to find the place of death instead of birth.
    """
    inner = pick_place(_bracketed_place(_life_parts(page)[death]), analysis.kind)
    if inner:
        yield PageFact(inner, 1.0, 0, "the brackets after the name")
    for sentence in page.sentences:
        for match in (DIED if death else BORN).finditer(sentence.text):
            tail = sentence.text[match.end() : match.end() + 160]
            place = _island(tail) if analysis.kind == "island" else ""
            place = place or pick_place(_stated_place(tail, match.group(), death), analysis.kind)
            if place:
                strength = 0.95 if match.group() in ("born", "died") else 0.85
                yield PageFact(
                    place, strength * _about_subject(sentence, match.start(), page), sentence.index, match.group()
                )
    if not death and page.lead is not None and analysis.kind == "place":
        yield from _origin(page.lead)


def _island(tail: str) -> str:
    """Return the island in "on the island of Fårö" or "in the Orkney Islands", or ""."""
    match = re.search(rf"\b[Ii]slands? of ({NAME})|({NAME} Islands?\b)|\bon ({NAME})", tail)
    return next((group.rstrip(".") for group in match.groups() if group), "") if match else ""


def _bracketed_place(part: str) -> str:
    """Return the place next to a date in brackets: "6 May 1874 in Bonn, Hesse", "Paris, November 1618"."""
    dated = ALL_DATES.search(part)
    if not dated:
        return ""
    before = part[: dated.start()].split("born")[-1].strip(" ,;")
    place = _place_in(part[dated.end() :].lstrip(" ,;")) or _place_in(before)
    names_person = re.match(r"born (?!in\b)", part) and f"born {place}" in part
    return "" if names_person else place


def _stated_place(tail: str, verb: str, death: bool) -> str:
    """Return the first place after "born" or "died", up to the words that begin another fact."""
    turn = r"\b(?:born|buried|where|after)\b" if death else r"\b(?:died|buried|moved|to a|to the)\b"
    tail = re.split(turn, tail.split(")")[0])[0]
    tail = f"of{tail}" if verb.endswith("native of") else tail
    places = (_place_in(tail[match.start() :]) for match in re.finditer(r"\b(?:in|at|near|of)\s+", tail))
    return next((place for place in places if place), "")


def _origin(lead: Sentence) -> Iterator[PageFact]:
    """Find the place in "Bonn-born", "native of Bonn" or "from Bonn"."""
    match = re.search(rf"({NAME})-(?:born|based)\b|\b(?:native of|from|hails from)\s+({NAME})", lead.text)
    place = (match.group(1) or match.group(2)) if match else ""
    if place and place not in PEOPLES:
        yield PageFact(place, 0.5, 0, "from")


def burial(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the date that follows "buried" or a similar word in a sentence.

    Args:
        page: Page of the person.
        analysis: Analysis of the question, which may ask for the year only.
    """
    for sentence in page.sentences:
        match = re.search(r"\b(?:buried|interred|laid to rest)\b", sentence.text)
        text = first_date(sentence.text[match.end() :], analysis.year_only) if match else ""
        if text:
            yield PageFact(text, 0.9, sentence.index, "buried")


def cause(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find causes of death. A known cause after "died of" is strongest, and a bare word such as "drowned" weakest.

    Args:
        page: Page of the person.
        analysis: Unused; all extractors have this parameter.
    """
    for sentence in page.sentences:
        match = CAUSE.search(sentence.text)
        if match:
            yield PageFact(match.group(1), 1.0, sentence.index, "died of")
            continue
        match = DIED_OF.search(sentence.text)
        if match:
            yield PageFact(match.group(1), 0.85, sentence.index, "died of")
        match = VIOLENT.search(sentence.text)
        if match:
            yield PageFact(match.group(1), 0.6, sentence.index, "died")
