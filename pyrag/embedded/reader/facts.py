"""Facts that a page states about its subject: life dates and places, nationality, country, occupation, release.

They are read from the opening of an encyclopaedic page, "X (3 May 1902 in Bonn – 4 June 1980) was a German painter",
and from the plain sentences after it. Relations whose answer is a name are in `people`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.regions import ADJECTIVES, CONTINENTS, COUNTRIES, PEOPLES, STATES
from pyrag.embedded.lexicon.times import MONTH_NAMES
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
from pyrag.embedded.words import stem, without_article, without_possessive
from pyrag_helpers.measures.amounts import whole_amount


def _peoples(text: str, hyphen: int = -1) -> Iterator[tuple[int, str]]:
    """Yield the adjectives of peoples in a text, each with its position. `nationality` explains `hyphen`."""
    words = list(re.finditer(r"[\w.]+(?:-[\w]+)*", text))
    for index, match in enumerate(words):
        two_words = text[match.start() : words[index + 1].end()] if index + 1 < len(words) else ""
        word = match.group().rstrip(".") if match.group() not in PEOPLES else match.group()
        if two_words in PEOPLES:
            yield match.start(), two_words
        elif word in PEOPLES and not (index and text[words[index - 1].start() : match.end()] in PEOPLES):
            yield match.start(), word
        elif "-" in word and not word.endswith("-born") and word.split("-")[hyphen] in PEOPLES:
            yield match.start(), word.split("-")[hyphen]


def nationality(page: View, analysis: QuestionAnalysis, hyphen: int = -1) -> Iterator[PageFact]:
    """Find adjectives of peoples, and countries, in each sentence.

    The strongest result is the one right after "was a" in the first sentence.

    Args:
        page: Page of a person, work or band.
        analysis: Analysis of the question. If it asks "which country", countries are preferred to adjectives.
        hyphen: Index of the part of a hyphenated word to return: -1 for "American" of "German-American", 0 for
            "German".
    """
    prefers_country = bool(re.search(r"\bcountry\b", analysis.question, re.I)) and analysis.kind != "country"
    for sentence in page.sentences:
        copula = COPULA.search(sentence.text)
        start = copula.end() if copula else 0
        weight = 1.0 if sentence.index == 0 else 0.6 - 0.05 * min(sentence.index, 6)
        for position, word in _peoples(sentence.text, hyphen):
            is_near = 0 <= position - start < 40
            strength = weight * (1.0 if is_near else 0.6) - (0.12 if prefers_country else 0)
            yield PageFact(word, strength, sentence.index, "nationality")
        for country in _countries(sentence.text):
            yield PageFact(country, weight * (0.55 if not prefers_country else 0.9), sentence.index, "country")


def _countries(text: str) -> list[str]:
    """Return the countries of a text in order, even inside a longer name such as "Republic of Ireland"."""
    names = [
        without_possessive(name.rstrip(".")) if name not in COUNTRIES else name for name in re.findall(rf"{NAME}", text)
    ]
    countries: list[str] = []
    for name in names:
        for part in (name, *re.split(r" (?:and|of|in) ", name)):
            without_article = part.removeprefix("the ").removeprefix("The ").rstrip(".")
            country_name = part if part in COUNTRIES else without_article
            if country_name in COUNTRIES:
                countries.append(country_name)
                break
    return countries


def country(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the country of a place: the last country in a sentence or, as a weaker result, an adjective of a people.

    Args:
        page: Page of the place.
        analysis: Analysis of the question. If its kind of answer is "state" or "continent", states or continents are
            found instead of countries.
    """
    for sentence in page.sentences:
        strength = 1.0 - 0.08 * min(sentence.index, 6)
        regions = {"state": STATES, "continent": CONTINENTS}.get(analysis.kind)
        areas = _countries(sentence.text) if regions is None else _named_among(regions, sentence.text)
        areas = [name for name in areas if name != page.base]
        if areas:
            area = _enclosing(areas, sentence.text) if regions is None else areas[0]
            yield PageFact(area, strength, sentence.index, "in")
        if regions is None:
            for _, word in _peoples(sentence.text):
                noun = ADJECTIVES.get(word, "")
                is_named = noun and any(re.search(rf"\b{noun}\b", line.text) for line in page.sentences)
                yield PageFact(noun if is_named else word, strength * 0.7, sentence.index, "nationality")
                break


def _named_among(names: frozenset[str], text: str) -> list[str]:
    """Return the names in a text that are in a set, in the order of the text."""
    candidates = (without_possessive(name.rstrip(".")) for name in re.findall(NAME, text))
    return [name for name in candidates if name in names]


def _enclosing(countries: list[str], text: str) -> str:
    """Return the country that a place is in, if a sentence names several countries.

    For "a city in Kano State, Nigeria, sharing a border with Niger", this is Nigeria.
    """
    text = re.split(r"\b(?:border|shar|neighbou?r)\w*", text)[0]
    inside = [
        name
        for name in countries
        if re.search(
            rf"(?:,|\bin|\bof|\bwithin)(?: the| [a-z]+ern| [a-z]+-[a-z]+)? {re.escape(name)}(?=[.,;]|$| and\b)", text
        )
    ]
    return (inside or countries)[-1]


_PRAISE = words("""
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
    """Find the first noun phrase after "was a German" that can be a role, without nationality and words of praise.

    Args:
        page: Page to read. Only its first three sentences are used.
        analysis: Analysis of the question. For the relation "occupation", words such as "son" and "film" are not roles.
    """
    for sentence in page.sentences[:3]:
        match = COPULA.search(sentence.text)
        roles = _noun_phrases(sentence.text[match.end() :]) if match else []
        possible_roles = [
            role for role in roles if analysis.relation != "occupation" or role.split()[-1] not in _NO_ROLE
        ]
        if possible_roles:
            yield PageFact(possible_roles[0], 1.0 if sentence.index == 0 else 0.6, sentence.index, "is a")
            return


def _noun_phrases(text: str) -> list[str]:
    """Return the noun phrases in the first 16 words of a text, split at commas and small words."""
    phrases: list[list[str]] = [[]]
    for token in re.findall(r"[\w'’.-]+|[^\w\s]", text)[:16]:
        word = token.rstrip(".")
        if not token[0].isalpha() or word in _ENDS_ROLE or word.endswith("ing"):
            phrases.append([])
        elif phrases[-1] or not _is_praise(word):
            phrases[-1].append(word)
    return [" ".join(phrase) for phrase in phrases if phrase]


def _is_praise(word: str) -> bool:
    """Return whether a word before a role is not part of the role: "famous", "German", "Berlin-born"."""
    return word in _PRAISE or not word[:1].islower() or "-born" in word or word.endswith("-American")


def event_date(page: View, analysis: QuestionAnalysis, pattern: re.Pattern[str]) -> Iterator[PageFact]:
    """Find the dates within 130 characters after a verb of release or foundation, and the date of the opening sentence.

    Args:
        page: Page of the work or organisation.
        analysis: Analysis of the question, which may ask for the year only. Dates after a verb of the question are
            stronger.
        pattern: Verbs of the event.
    """
    question_stems = {stem(word) for word in analysis.folded.split()}
    for sentence in page.sentences:
        for match in pattern.finditer(sentence.text):
            after = sentence.text[match.end() : match.end() + 130]
            text = first_date(after, analysis.year_only)
            if text:
                full = -0.3 if not re.search(r"\d{3}", text) else 0.1 if re.search(r"[A-Z]", text) else 0.0
                close = 0.05 if ALL_DATES.search(after[:30]) else 0.0
                # a question with "opened" does not ask when something "began"
                close += 0.2 if stem(match.group().lower()) in question_stems else 0.0
                yield PageFact(text, 0.85 + full + close - 0.06 * min(sentence.index, 8), sentence.index, match.group())
    if page.lead is not None:
        opening = re.search(r"\b(?:is|was|are|were) (?:an?|the) .{0,30}?\b(\d{4})\b", page.lead.text)
        if opening:
            yield PageFact(opening.group(1), 0.88, 0, "is a")
        elif text := first_date(page.lead.text, analysis.year_only):
            yield PageFact(text, 0.5, 0, "date")


def award(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find names of prizes of at least two words, stronger in a sentence with "won" or a similar verb.

    Args:
        page: Page of the winner.
        analysis: Unused; all extractors have this parameter.
    """
    for sentence in page.sentences:
        won = re.search(r"\b(?:won|win\w*|receiv\w+|recipient|awarded|honou?red|inducted|earned)\b", sentence.text)
        for first, stop in names(sentence):
            joined = first > 1 and sentence.lowers[first - 1] == "&"  # "Rock & Roll Hall of Fame"
            text = sentence.span(first - 2 if joined else first, stop)
            text = without_article(text)
            if PRIZE.search(text) and len(text.split()) > 1:
                strength = (0.9 if won else 0.5) - 0.05 * min(sentence.index, 6)
                yield PageFact(text, strength, sentence.index, won.group() if won else "award")


def by_pattern(page: View, pattern: re.Pattern[str], cue: str, strength: float = 0.9) -> Iterator[PageFact]:
    """Find the first match of a pattern in each sentence, without a leading article.

    Args:
        page: Page to read.
        pattern: Pattern whose first matching group is the answer, or the whole match if no group matches.
        cue: Reason to show in the rationale.
        strength: Strength of an answer in the first sentence, in [0, 1].
    """
    for sentence in page.sentences:
        match = pattern.search(sentence.text)
        if match:
            text = next((group for group in match.groups() if group), match.group())
            yield PageFact(
                re.sub(r"^(?:a|an|the|as) ", "", text), strength - 0.05 * min(sentence.index, 8), sentence.index, cue
            )


def by_measure(page: View, pattern: re.Pattern[str], cue: str) -> Iterator[PageFact]:
    """Find the first amount that a pattern matches in each sentence, extended to the whole amount: "6 ft 2 in".

    Args:
        page: Page to read.
        pattern: Pattern whose first matching group is in the amount.
        cue: Reason to show in the rationale.
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
    """Find the genre before the noun of a work or band: "punk rock" in "an American punk rock band".

    Args:
        page: Page of the work or band. Only its first sentence is used.
        analysis: Unused; all extractors have this parameter.
    """
    if page.lead is None:
        return
    match = GENRE.search(page.lead.text)
    words_before_noun = match.group(1).split() if match else []
    genre_words = [word for word in words_before_noun if word.lower() not in _NO_GENRE and word[0].islower()]
    if genre_words:
        yield PageFact(" ".join(genre_words).strip(","), 0.9, 0, "is a")


def continent(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find continents, at most one per sentence.

    Args:
        page: Page of the place.
        analysis: Unused; all extractors have this parameter.
    """
    pattern = re.compile(rf"\b({'|'.join(sorted(CONTINENTS, key=len, reverse=True))})\b")
    yield from by_pattern(page, pattern, "in")


def origin(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find the country of origin of a work or band: a country, or an adjective of a people.

    Args:
        page: Page of the work or band.
        analysis: Analysis of the question. If it asks "which country", countries are preferred to adjectives.
    """
    for fact in nationality(page, analysis, hyphen=0):
        bonus = 0.25 if fact.text in COUNTRIES and fact.text not in ADJECTIVES and fact.sentence == 0 else 0.0
        yield PageFact(fact.text, min(fact.strength + bonus, 1.0), fact.sentence, fact.cue)


def places_in_lead(page: View, analysis: QuestionAnalysis) -> Iterator[PageFact]:
    """Find names after "in", "of" or "at", earlier ones stronger; months and the page's own title are left out.

    Args:
        page: Page to read. Only its first three sentences are used.
        analysis: Unused; all extractors have this parameter.
    """
    for sentence in page.sentences[:3]:
        for match in re.finditer(r"\b(?:in|of|at)\s+(?:the )?", sentence.text):
            listed = names_after(sentence, match.end())
            if listed and listed[0].split()[0] not in MONTH_NAMES and listed[0] != page.base:
                yield PageFact(listed[0], 0.85 - 0.1 * sentence.index - 0.001 * match.start(), sentence.index, "in")


_COUNTY = re.compile(rf"{NAME} County|County {NAME}")
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
    "county": lambda page, analysis: by_pattern(page, _COUNTY, "County", 1.0),
    "located in": places_in_lead,
    "occupation": occupation,
    "instance of": occupation,
    "publication date": lambda page, analysis: event_date(page, analysis, RELEASE),
    "inception": lambda page, analysis: event_date(page, analysis, FOUNDING),
    "date of marriage": lambda page, analysis: event_date(page, analysis, re.compile(r"\bmarri\w+\b")),
    "population": lambda page, analysis: by_pattern(page, POPULATION, "population", 1.0),
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
