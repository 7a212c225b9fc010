"""A person's dates and places: born, died, buried, and of what; read from brackets after the name and plain sentences.

One of the sources of `facts`, which lists what can be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.embedded.lexicon import CONTINENTS, COUNTRIES, PEOPLES, STATES
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.patterns import (
    ALL_DATES,
    BORN,
    CAUSE,
    DIED,
    DIED_OF,
    MONTH_WORDS,
    NAME,
    PLACE,
    SPLIT,
    VIOLENT,
)
from pyrag.embedded.reader.people import PageFact
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import Sentence


def brackets(sentence: Sentence) -> Iterator[tuple[int, str]]:
    """Outer bracketed parts of a sentence."""
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
    """Return what the brackets behind a person's name say of birth and of death."""
    found = [(start, inside) for sentence in page.sentences[:2] for start, inside in brackets(sentence)]
    ranges = [each for each in found if len(ALL_DATES.findall(each[1])) > 1 and SPLIT.search(each[1])]
    for start, inside in (*ranges[:1], *found):
        if start > 250 or not (ALL_DATES.search(inside) or re.match(r"\s*(?:born|b\.|died)", inside)):
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
    """Return the first date of a text, or "" where it has none.

    Args:
        text: Part of a sentence.
        year_only: Return only the year of a date that has one.
    """
    found = ALL_DATES.search(text)
    if not found:
        return ""
    full = re.sub(r"\s+", " ", found.group()).strip()
    year = re.search(r"\d{3,4}(?:\s?BCE?)?", full) if year_only else None
    return year.group() if year else full


def _place_in(text: str) -> str:
    for match in re.finditer(r"(?:\b(?:in|at|near|from|of)\s+|^|,\s*|\)\s*)", text):
        place = PLACE.match(text, match.end())
        if (
            place
            and place.group(1).split(",")[0].strip() not in PEOPLES
            and place.group(1).split()[0].strip(",") not in MONTH_WORDS
            and not place.group(1).startswith(("AD ", "BC"))
        ):
            return place.group(1)
    return ""


def pick_place(place: str, kind: str) -> str:
    """Return the part of "Bonn, Hesse, Germany" that a question asks for: the country, the state, else the town.

    Args:
        place: Places parted by commas, the smallest first.
        kind: Kind of answer: "country", "state", "continent", "county"; anything else means the first part.

    Returns:
        The part, or "" where none is of that kind.
    """
    parts = [part.strip().rstrip(".-") for part in place.split(",")]
    wanted = {"country": COUNTRIES, "state": STATES, "continent": CONTINENTS}.get(kind)
    if wanted is not None:
        return next((part for part in reversed(parts) if part.removeprefix("the ") in wanted), "")
    if kind == "county":
        return next((part for part in parts if part.endswith("County") or part.startswith("County")), "")
    return parts[0]


def _own(sentence: Sentence, position: int, page: View) -> float:
    """Rate how surely the words at `position` speak of the page's subject rather than of a relative."""
    before = sentence.text[:position].strip()
    words = re.findall(r"\w+", before)
    if (
        not words
        or words[0] in ("He", "She", "It", "They", "Born", "Originally")
        or words[-1].lower() in ("he", "she", "it", "who", "and", "was")
    ):
        return 1.0
    own = set(re.findall(r"\w+", page.base))
    return 0.95 if set(words) & own or sentence.index == 0 else 0.6


def life_date(page: View, analysis: QuestionAnalysis, death: bool) -> Iterator[PageFact]:
    """Find a person's date of birth or death: in the brackets after the name, then within 120 characters after a verb.

    Args:
        page: The person's page.
        analysis: The question; it says whether only the year is wanted.
        death: Look for death instead of birth.
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
                yield PageFact(text, 0.9 * _own(sentence, match.start(), page), sentence.index, match.group())


def life_place(page: View, analysis: QuestionAnalysis, death: bool) -> Iterator[PageFact]:
    """Find a person's place of birth or death: in the brackets after the name, then within 160 characters after a verb.

    Args:
        page: The person's page.
        analysis: The question; its kind (country, state, island …) says which part of a place is wanted.
        death: Look for death instead of birth.
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
                yield PageFact(place, strength * _own(sentence, match.start(), page), sentence.index, match.group())
    if not death and page.lead is not None and analysis.kind == "place":
        yield from _origin(page.lead)


def _island(tail: str) -> str:
    """ "on the island of Fårö", "in the Orkney Islands": the island, not the town on it."""
    found = re.search(rf"\b[Ii]slands? of ({NAME})|({NAME} Islands?\b)|\bon ({NAME})", tail)
    return next((group.rstrip(".") for group in found.groups() if group), "") if found else ""


def _bracketed_place(part: str) -> str:
    """The place beside a date: "6 May 1874 in Bonn, Hesse", "Paris, November 1618"."""
    dated = ALL_DATES.search(part)
    if not dated:
        return ""
    before = part[: dated.start()].split("born")[-1].strip(" ,;")
    place = _place_in(part[dated.end() :].lstrip(" ,;")) or _place_in(before)
    names_person = re.match(r"born (?!in\b)", part) and f"born {place}" in part
    return "" if names_person else place


def _stated_place(tail: str, verb: str, death: bool) -> str:
    """The place in what follows "born" or "died", up to where the sentence turns to something else."""
    turn = r"\b(?:born|buried|where|after)\b" if death else r"\b(?:died|buried|moved|to a|to the)\b"
    tail = re.split(turn, tail.split(")")[0])[0]
    tail = f"of{tail}" if verb.endswith("native of") else tail
    found = (_place_in(tail[at.start() :]) for at in re.finditer(r"\b(?:in|at|near|of)\s+", tail))
    return next((place for place in found if place), "")


def _origin(lead: Sentence) -> Iterator[PageFact]:
    match = re.search(rf"({NAME})-(?:born|based)\b|\b(?:native of|from|hails from)\s+({NAME})", lead.text)
    place = (match.group(1) or match.group(2)) if match else ""
    if place and place not in PEOPLES:
        yield PageFact(place, 0.5, 0, "from")


def burial(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the dates that follow "buried" or the like in a sentence.

    Args:
        page: The person's page.
        analysis: The question; it says whether only the year is wanted.
    """
    for sentence in page.sentences:
        match = re.search(r"\b(?:buried|interred|laid to rest)\b", sentence.text)
        text = first_date(sentence.text[match.end() :], analysis.year_only) if match else ""
        if text:
            yield PageFact(text, 0.9, sentence.index, "buried")


def cause(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find causes of death: a known one after "died of" or the like is strongest, a bare "drowned" weakest.

    Args:
        page: The person's page.
        analysis: Not used; every extractor takes it.
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
