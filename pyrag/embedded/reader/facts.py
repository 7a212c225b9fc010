"""Facts that a page states of its own subject: life dates and places, nationality, country, occupation, release.

Reads the opening of an encyclopaedic page ("X (3 May 1902 in Bonn – 4 June 1980) was a German painter") and the plain
sentences after it. Relations whose answer is a name are in `people`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyrag.embedded.lexicon import ADJECTIVES, CONTINENTS, COUNTRIES, PEOPLES, STATES, words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.life import burial, cause, first_date, life_date, life_place
from pyrag.embedded.reader.patterns import (
    ALL_DATES,
    COPULA,
    CURRENCY,
    FOUNDING,
    GENRE,
    HEIGHT,
    LANGUAGE,
    LENGTH,
    MONTH_WORDS,
    NAME,
    POPULATION,
    POSITION,
    PRIZE,
    RELEASE,
    RIVER,
    SPORT,
)
from pyrag.embedded.reader.people import PageFact, names_after
from pyrag.embedded.reader.periods import period
from pyrag.embedded.reader.spans import names
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import stem
from pyrag_helpers.measures.amounts import whole_amount


def _peoples(text: str, hyphen: int = -1) -> Iterator[tuple[int, str]]:
    words = list(re.finditer(r"[\w.]+(?:-[\w]+)*", text))
    for index, match in enumerate(words):
        two = text[match.start() : words[index + 1].end()] if index + 1 < len(words) else ""
        word = match.group().rstrip(".") if match.group() not in PEOPLES else match.group()
        if two in PEOPLES:
            yield match.start(), two
        elif word in PEOPLES and not (index and text[words[index - 1].start() : match.end()] in PEOPLES):
            yield match.start(), word
        elif "-" in word and not word.endswith("-born") and word.split("-")[hyphen] in PEOPLES:
            yield match.start(), word.split("-")[hyphen]


def nationality(page: View, analysis: QuestionAnalysis, hyphen: int = -1) -> Iterator[PageFact]:
    """Find adjectives of peoples, and countries, in each sentence; strongest in the first, right after "was a".

    Args:
        page: The page of the person, work or band.
        analysis: The question; where it says "country" and its kind is another, adjectives weigh less, countries more.
        hyphen: Part of a hyphenated word that counts: -1 the last ("American" of "German-American"), 0 the first.
    """
    prefers_country = bool(re.search(r"\bcountry\b", analysis.question, re.I)) and analysis.kind != "country"
    for sentence in page.sentences:
        copula = COPULA.search(sentence.text)
        start = copula.end() if copula else 0
        base = 1.0 if sentence.index == 0 else 0.6 - 0.05 * min(sentence.index, 6)
        for position, word in _peoples(sentence.text, hyphen):
            near = 0 <= position - start < 40
            yield PageFact(
                word, base * (1.0 if near else 0.6) - (0.12 if prefers_country else 0), sentence.index, "nationality"
            )
        for country in _countries(sentence.text):
            yield PageFact(country, base * (0.55 if not prefers_country else 0.9), sentence.index, "country")


def _countries(text: str) -> list[str]:
    names = [
        re.sub(r"['’]s?$", "", name.rstrip(".")) if name not in COUNTRIES else name
        for name in re.findall(rf"{NAME}", text)
    ]
    found: list[str] = []
    for name in names:
        for part in (name, *re.split(r" (?:and|of|in) ", name)):
            bare = part.removeprefix("the ").removeprefix("The ").rstrip(".")
            key = part if part in COUNTRIES else bare
            if key in COUNTRIES:
                found.append(key)
                break
    return found


def country(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Return the country in which a place lies or to which it belongs: the last country of the opening, else an
    adjective of one.

    Args:
        page: The page of the place.
        analysis: The question; of the kinds "state" and "continent", those are looked for instead of countries.
    """
    for sentence in page.sentences:
        strength = 1.0 - 0.08 * min(sentence.index, 6)
        wanted = {"state": STATES, "continent": CONTINENTS}.get(analysis.kind)
        found = (
            _countries(sentence.text)
            if wanted is None
            else [
                n
                for each in re.findall(NAME, sentence.text)
                if (n := re.sub(r"['’]s?$", "", each.rstrip("."))) in wanted
            ]
        )
        found = [name for name in found if name != page.base]
        if found:
            yield PageFact(
                _enclosing(found, sentence.text) if wanted is None else found[0], strength, sentence.index, "in"
            )
        if wanted is None:
            for _, word in _peoples(sentence.text):
                noun = ADJECTIVES.get(word, "")
                named = noun and any(re.search(rf"\b{noun}\b", each.text) for each in page.sentences)
                yield PageFact(noun if named else word, strength * 0.7, sentence.index, "nationality")
                break


def _enclosing(found: list[str], text: str) -> str:
    """Of several countries in a sentence the one a place lies in: ", Nigeria, sharing a border with Niger"."""
    text = re.split(r"\b(?:border|shar|neighbou?r)\w*", text)[0]
    inside = [
        name
        for name in found
        if re.search(
            rf"(?:,|\bin|\bof|\bwithin)(?: the| [a-z]+ern| [a-z]+-[a-z]+)? {re.escape(name)}(?=[.,;]|$| and\b)", text
        )
    ]
    return (inside or found)[-1]


def county(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find "X County" or "County X", at most once in each sentence.

    Args:
        page: The page of the place.
        analysis: Not used; every extractor takes it.
    """
    for sentence in page.sentences:
        match = re.search(rf"{NAME} County|County {NAME}", sentence.text)
        if match:
            yield PageFact(match.group(), 1.0 - 0.1 * sentence.index, sentence.index, "County")


_DROP = words("""
    silent
    former retired professional noted famous prominent leading well-known notable award-winning renowned early late
    young ex prolific influential popular acclaimed celebrated amateur active senior emeritus distinguished current
    female male Hall contemporary self-taught
""")


_ENDS_ROLE = words("""
    and of who in for from with at that which on by best known as to the based he she was is whose or serving born
    perhaps primarily mostly mainly also under during since until active
""")
_NO_ROLE = words("""
    son daughter grandson granddaughter child member one person man woman native nephew niece brother sister stage
    film silent television radio theatre theater voice screen visual musical
""")


def occupation(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the first noun phrase after "was a German" that can be a role, without nationality and praise.

    Args:
        page: The page to read; only its first three sentences are.
        analysis: The question; for the relation "occupation" words such as "son" or "film" are no role.
    """
    for sentence in page.sentences[:3]:
        match = COPULA.search(sentence.text)
        roles = _noun_phrases(sentence.text[match.end() :]) if match else []
        fitting = [role for role in roles if analysis.relation != "occupation" or role.split()[-1] not in _NO_ROLE]
        if fitting:
            yield PageFact(fitting[0], 1.0 if sentence.index == 0 else 0.6, sentence.index, "is a")
            return


def _noun_phrases(text: str) -> list[str]:
    """The plain phrases of the next words, parted by commas and small words."""
    found: list[list[str]] = [[]]
    for word in re.findall(r"[\w'’.-]+|[^\w\s]", text)[:16]:
        bare = word.rstrip(".")
        if not word[0].isalpha() or bare in _ENDS_ROLE or bare.endswith("ing"):
            found.append([])
        elif found[-1] or not _is_praise(bare):
            found[-1].append(bare)
    return [" ".join(phrase) for phrase in found if phrase]


def _is_praise(word: str) -> bool:
    return word in _DROP or not word[:1].islower() or "-born" in word or word.endswith("-American")


def event_date(page: View, analysis: QuestionAnalysis, pattern: re.Pattern[str]) -> Iterator[PageFact]:
    """Find the dates within 130 characters after a verb of release or foundation, and the date of the opening.

    Args:
        page: The page of the work or organisation.
        analysis: The question; it says whether only the year is wanted.
        pattern: The verbs.
    """
    asked = {stem(word) for word in analysis.folded.split()}
    for sentence in page.sentences:
        for match in pattern.finditer(sentence.text):
            after = sentence.text[match.end() : match.end() + 130]
            text = first_date(after, analysis.year_only)
            if text:
                full = -0.3 if not re.search(r"\d{3}", text) else 0.1 if re.search(r"[A-Z]", text) else 0.0
                close = 0.05 if ALL_DATES.search(after[:30]) else 0.0
                close += (
                    0.2 if stem(match.group().lower()) in asked else 0.0
                )  # "opened" is asked, and "began" is not it
                yield PageFact(text, 0.85 + full + close - 0.06 * min(sentence.index, 8), sentence.index, match.group())
    if page.lead is not None:
        opening = re.search(r"\b(?:is|was|are|were) (?:an?|the) .{0,30}?\b(\d{4})\b", page.lead.text)
        if opening:
            yield PageFact(opening.group(1), 0.88, 0, "is a")
        elif text := first_date(page.lead.text, analysis.year_only):
            yield PageFact(text, 0.5, 0, "date")


def population(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find numbers of inhabitants, at most one in each sentence.

    Args:
        page: The page of the place.
        analysis: Not used; every extractor takes it.
    """
    for sentence in page.sentences:
        match = POPULATION.search(sentence.text)
        if match:
            yield PageFact(match.group(1) or match.group(2), 1.0 - 0.05 * sentence.index, sentence.index, "population")


def award(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find names of at least two words that are those of prizes; stronger where the sentence says "won" or the like.

    Args:
        page: The page of the winner.
        analysis: Not used; every extractor takes it.
    """
    for sentence in page.sentences:
        won = re.search(r"\b(?:won|win\w*|receiv\w+|recipient|awarded|honou?red|inducted|earned)\b", sentence.text)
        for span in names(sentence):
            joined = span.first > 1 and sentence.lowers[span.first - 1] == "&"  # "Rock & Roll Hall of Fame"
            text = sentence.span(span.first - 2 if joined else span.first, span.stop)
            text = re.sub(r"^(?:The|A|An) ", "", text)
            if PRIZE.search(text) and len(text.split()) > 1:
                yield PageFact(
                    text,
                    (0.9 if won else 0.5) - 0.05 * min(sentence.index, 6),
                    sentence.index,
                    won.group() if won else "award",
                )


def by_pattern(page: View, pattern: re.Pattern[str], cue: str) -> Iterator[PageFact]:
    """Find the first match of a pattern in each sentence, without a leading article.

    Args:
        page: The page to read.
        pattern: Its first group that matched is the answer, else the whole match.
        cue: Said to people as the reason.
    """
    for sentence in page.sentences:
        match = pattern.search(sentence.text)
        if match:
            text = next((group for group in match.groups() if group), match.group())
            yield PageFact(
                re.sub(r"^(?:a|an|the|as) ", "", text), 0.9 - 0.05 * min(sentence.index, 8), sentence.index, cue
            )


def by_measure(page: View, pattern: re.Pattern[str], cue: str) -> Iterator[PageFact]:
    """Find the first match of a pattern in each sentence, and take the amount in it as a whole: "6 ft 2 in".

    Args:
        page: The page to read.
        pattern: Its first group that matched is the amount.
        cue: Said to people as the reason.
    """
    for sentence in page.sentences:
        match = pattern.search(sentence.text)
        if match:
            start, end = next(match.span(number) for number, group in enumerate(match.groups(), 1) if group)
            start, end = whole_amount(sentence.text, start, end)
            strength = 0.9 - 0.05 * min(sentence.index, 8)
            yield PageFact(sentence.text[start:end], strength, sentence.index, cue)


_NO_GENRE = words("""
    debut studio live compilation first second third fourth fifth language feature short silent black-and-white made
    television direct-to-video upcoming original official self-titled final independent theatrical the by of
""")


def genre(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the words between the nationality and the noun of a work or band: "an American punk rock band".

    Args:
        page: The page of the work or band; only its first sentence is read.
        analysis: Not used; every extractor takes it.
    """
    if page.lead is None:
        return
    match = GENRE.search(page.lead.text)
    kept = (
        [word for word in match.group(1).split() if word.lower() not in _NO_GENRE and word[0].islower()]
        if match
        else []
    )
    if kept:
        yield PageFact(" ".join(kept).strip(","), 0.9, 0, "is a")


def continent(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find continents, at most one in each sentence.

    Args:
        page: The page of the place.
        analysis: Not used; every extractor takes it.
    """
    pattern = re.compile(rf"\b({'|'.join(sorted(CONTINENTS, key=len, reverse=True))})\b")
    yield from by_pattern(page, pattern, "in")


def origin(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the nationality of a work or a band, by adjective or by the country it is from.

    Args:
        page: The page of the work or band.
        analysis: The question, as for `nationality`.
    """
    for found in nationality(page, analysis, hyphen=0):
        bonus = 0.25 if found.text in COUNTRIES and found.text not in ADJECTIVES and found.sentence == 0 else 0.0
        yield PageFact(found.text, min(found.strength + bonus, 1.0), found.sentence, found.cue)


def places_in_lead(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find names after "in", "of" or "at" that are neither a month nor the page's own title; earlier ones are stronger.

    Args:
        page: The page to read; only its first three sentences are.
        analysis: Not used; every extractor takes it.
    """
    for sentence in page.sentences[:3]:
        for match in re.finditer(r"\b(?:in|of|at)\s+(?:the )?", sentence.text):
            names = names_after(sentence, match.end())
            if names and names[0].split()[0] not in MONTH_WORDS and names[0] != page.base:
                yield PageFact(names[0], 0.85 - 0.1 * sentence.index - 0.001 * match.start(), sentence.index, "in")


Extractor = Callable[[View, QuestionAnalysis], Iterator[PageFact]]
FACTS: dict[str, Extractor] = {
    "date of birth": lambda page, analysis: life_date(page, analysis, death=False),
    "date of death": lambda page, analysis: life_date(page, analysis, death=True),
    "place of birth": lambda page, analysis: life_place(page, analysis, death=False),
    "place of death": lambda page, analysis: life_place(page, analysis, death=True),
    "date of burial": burial,
    "cause of death": cause,
    "award received": award,
    "country of citizenship": nationality,
    "country of origin": origin,
    "country": country,
    "state": country,
    "county": county,
    "located in": places_in_lead,
    "occupation": occupation,
    "instance of": occupation,
    "publication date": lambda page, analysis: event_date(page, analysis, RELEASE),
    "inception": lambda page, analysis: event_date(page, analysis, FOUNDING),
    "date of marriage": lambda page, analysis: event_date(page, analysis, re.compile(r"\bmarri\w+\b")),
    "population": population,
    "position held": lambda page, analysis: by_pattern(page, POSITION, "plays as"),
    "language of work": lambda page, analysis: by_pattern(page, LANGUAGE, "language"),
    "continent": continent,
    "genre": genre,
    "sport": lambda page, analysis: by_pattern(page, SPORT, "sport"),
    "currency": lambda page, analysis: by_pattern(page, CURRENCY, "currency"),
    "height": lambda page, analysis: by_measure(page, HEIGHT, "height"),
    "length": lambda page, analysis: by_measure(page, LENGTH, "length"),
    "river": lambda page, analysis: by_pattern(page, RIVER, "river"),
    "period active": period,
}
