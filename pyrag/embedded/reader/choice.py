"""Comparison of two things by a date, a number or a shared property, for yes/no and either-or questions.

Each thing has a text about it: its passage, or its part of the facts in a query. Values are parsed before they are
compared; values that cannot be parsed are not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.measures import GREATER, SMALLER, superlatives
from pyrag.embedded.lexicon.verbs import FOUNDED
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.compared_measure import measure_of
from pyrag.embedded.reader.facts import FACTS
from pyrag.embedded.reader.patterns import NAME
from pyrag.embedded.reader.people import PageFact, by_cue
from pyrag.embedded.reader.view import View, view
from pyrag.embedded.words import content_stem, content_stems, fold, sentence
from pyrag.trace.model import Passage
from pyrag_helpers.dates import parse_date
from pyrag_helpers.names import same_name
from pyrag_helpers.numbers import parse_quantity

_EARLY = r"\b(?:older|oldest|elder|eldest|first|earlier|earliest|before|prior)\b"
_LATE = r"\b(?:younger|youngest|later|latest|last|newer|newest|recent|recently|after)\b"
_MORE = rf"\b(?:more|most|{GREATER}|{superlatives(GREATER)})\b"
_LESS = rf"\b(?:fewer|fewest|less|least|{SMALLER}|{superlatives(SMALLER)})\b"
_MEASURES = (
    ("date of death", r"\b(?:die|died|death|passed away)\b"),
    ("date of birth", r"\b(?:born|birth|older|younger|oldest|youngest|elder|eldest)\b"),
    ("publication date", r"\b(?:release[ds]?|come out|came out|published|premiered?|aired|debuted)\b"),
    ("inception", rf"\b{any_of(FOUNDED)}\b"),
    ("population", r"\b(?:population|populous|people|inhabitants)\b"),
)
OF_BOTH = re.compile(r"\b(?:same|share|both|common|also)\b", re.I)
_BY_WORDS = 0.4  # confidence of a verdict that only counts shared words
_MIN_ABOUT = 0.6  # a passage that matches an option less is not the option's
_MAX_FACT = 200  # characters of a text in which any date or number is taken for the thing's


class IncomparableError(ValueError):
    """Error for two values in units that cannot be compared, such as dollars and euros."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Answer reached by a comparison.

    Args:
        text: The answer: one of the options, or "yes" or "no".
        confidence: Confidence in [0, 1].
        because: Values that led to the answer, for the rationale.
        pages: Positions of the pages that the values are from.
    """

    text: str
    confidence: float
    because: str
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One of the things compared, with the text about it.

    Args:
        name: Name of the thing, as in the question.
        page: View of the text.
        certainty: Certainty that the text is about the thing, in [0, 1].
    """

    name: str
    page: View
    certainty: float = 1.0


def about_option(option: str, passages: Sequence[Passage]) -> Statement | None:
    """Return the passage whose title matches an option best.

    Args:
        option: Option, as the question names it.
        passages: Passages to search. Of equally good ones, the first is used.

    Returns:
        The passage as a statement, or None if no title matches well enough.
    """
    analysis = QuestionAnalysis(option, "", "thing", option, "")
    pages = [view(position, passage, analysis) for position, passage in enumerate(passages)]
    best = max(pages, key=lambda page: (page.about, -page.position), default=None)
    return Statement(option, best, best.about) if best is not None and best.about >= _MIN_ABOUT else None


def from_facts(names: Sequence[str], facts: str) -> list[Statement | None]:
    """Split facts into one statement for each name: the text from its first mention to the next name's.

    Args:
        names: Names to look for, in any case.
        facts: Running text.

    Returns:
        A statement for each name, in their order. None for a name that the facts do not mention.
    """
    lowered = facts.lower()
    places = [lowered.find(name.lower()) for name in names]
    statements: list[Statement | None] = []
    for name, place in zip(names, places, strict=True):
        if place < 0:
            statements.append(None)
            continue
        stop = min((other for other in places if other > place), default=len(facts))
        text = facts[place:stop].strip(" ,;")
        text = re.sub(r"(?:\band|;|,)\s*$", "", text).strip()
        analysis = QuestionAnalysis(name, "", "thing", name, "")
        statements.append(Statement(name, view(0, Passage("", name, text), analysis)))
    return statements


def choose(analysis: QuestionAnalysis, options: Sequence[Statement | None]) -> Decision | None:
    """Choose between two options by the date or number that the question compares.

    Args:
        analysis: Analysis of the question, whose words determine which value is compared, and whether the smaller or
            the larger one wins.
        options: Exactly two statements. None for an option without a text.

    Returns:
        The option, or None if a value is missing or both are equal.

    Raises:
        IncomparableError: The values have units that cannot be compared.
    """
    first, second = options
    direction = _direction(analysis.question)
    if first is None or second is None or not direction:
        return None
    left, right = (_value(analysis, option) for option in (first, second))
    if left is None or right is None:
        return None
    try:
        is_equal, is_first = left[0] == right[0], left[0] < right[0]
    except ValueError as error:
        raise IncomparableError(f"{first.name}: {left[1]}; {second.name}: {right[1]}: {error}") from error
    if is_equal:
        return None
    smaller = first if is_first else second
    larger = second if smaller is first else first
    winner = smaller if direction == "min" else larger
    because = f"{first.name}: {left[1]}; {second.name}: {right[1]}"
    return Decision(winner.name, 0.9 * min(first.certainty, second.certainty), because, _positions(first, second))


def _positions(*statements: Statement) -> tuple[int, ...]:
    """Return the positions of the pages of some statements, without duplicates."""
    return tuple(dict.fromkeys(statement.page.position for statement in statements))


def _direction(question: str) -> str:
    """Return "min" or "max" for the value that a question asks for, or "" if it compares nothing."""
    text = question.lower()
    if re.search(r"\b(?:lived? longer|longer life)\b", text):
        return "max"
    for pattern, direction in ((_LATE, "max"), (_EARLY, "min"), (_LESS, "min"), (_MORE, "max")):
        if re.search(pattern, text):
            return direction
    return ""


def _value(analysis: QuestionAnalysis, statement: Statement) -> tuple[Any, str] | None:
    """Return the value of a thing that the question compares, and the text it was read from.

    The question's relation is looked up first. If that fails, a short text may hold the value without naming the
    relation.
    """
    text = analysis.question.lower()
    if re.search(r"\b(?:lived? longer|longer life)\b", text):
        return _lifespan(analysis, statement)
    by_date = bool(re.search(f"{_EARLY}|{_LATE}", text))
    named = [relation for relation, pattern in _MEASURES if re.search(pattern, text)]
    fallbacks = ["date of birth", "publication date", "inception"] if by_date else []
    for relation in dict.fromkeys((*named, *fallbacks)):
        fact = best_fact(relation, analysis, statement.page)
        value = _parsed(fact, parse_date if by_date else parse_quantity)
        if value is not None:
            return value, fact
    if by_date and not named:
        return None
    whole = " ".join(sentence.text for sentence in statement.page.sentences)
    if len(whole) >= _MAX_FACT:
        return None
    if by_date:
        value = _parsed(whole.replace(statement.name, " "), parse_date)
        return None if value is None else (value, whole[:60])
    return measure_of(analysis.question, statement.name, statement.page.sentences)


def _lifespan(analysis: QuestionAnalysis, statement: Statement) -> tuple[Any, str] | None:
    """Return the length of a life in days, and the two dates as text."""
    born, died = (best_fact(relation, analysis, statement.page) for relation in ("date of birth", "date of death"))
    start, end = _parsed(born, parse_date), _parsed(died, parse_date)
    return None if start is None or end is None else (end - start, f"{born} – {died}")


def _parsed(text: str, parse: Callable[[str], object]) -> Any:
    """Parse a text, or return None if it has no value. A date becomes a number of days."""
    if not text:
        return None
    try:
        value = parse(text)
    except ValueError:
        return None
    ordinal = getattr(value, "toordinal", None)
    return float(ordinal()) if ordinal else value


def facts_of(relation: str, analysis: QuestionAnalysis, page: View) -> list[PageFact]:
    """Return the facts of a page for a relation, strongest first.

    Equally strong facts keep the order of the page.

    Args:
        relation: Name of the relation. A relation without extractor and cues has no facts.
        analysis: Analysis of the question, which may narrow the kind of answer.
        page: Page to read.
    """
    facts = list(FACTS[relation](page, analysis)) if relation in FACTS else []
    facts = facts or list(by_cue(relation, page))
    return sorted(facts, key=lambda fact: -fact.strength)


def best_fact(relation: str, analysis: QuestionAnalysis, page: View) -> str:
    """Return the text of the strongest fact of a page for a relation; empty if the page has no such fact.

    Args:
        relation: Name of the relation.
        analysis: Analysis of the question, which may narrow the kind of answer.
        page: Page to read.
    """
    facts = facts_of(relation, analysis, page)
    return facts[0].text if facts else ""


def decide(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer a yes/no question: compare two things, or look for the claim on one thing's page.

    Args:
        analysis: Analysis of the question.
        things: Things that the question names. Only the first two are used.

    Returns:
        The answer, or None if nothing can be compared or read.
    """
    if len(things) >= 2:
        return compare(analysis, things) or _shared_words(analysis, things)
    return _stated(analysis, things[0]) if things else None


def compare(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer a yes/no question by a value of two things: which is larger, or whether they are the same.

    Args:
        analysis: Analysis of the question.
        things: At least two things. Only the first two are used.
    """
    return _than(analysis, things) or _same_property(analysis, things)


def _than(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer a question such as "Is A older than B?" by the values of both things."""
    match = re.search(r"\b(?:than|before|after)\b", analysis.question)
    if not match or not _direction(analysis.question):
        return None
    ordered = sorted(things[:2], key=lambda thing: analysis.question.lower().find(thing.name.lower()))
    verdict = choose(analysis, ordered)
    if verdict is None:
        return None
    return Decision(
        "yes" if verdict.text == ordered[0].name else "no", verdict.confidence, verdict.because, verdict.pages
    )


_PROPERTIES = (
    ("country of citizenship", r"nationalit|citizen|\bcountr(?:y|ies)\b|\bnation\b"),
    ("country", r"located|situated|\bcountr(?:y|ies)\b"),
    ("country of origin", r"originat|\bcountr(?:y|ies)\b"),
    ("occupation", r"profession|occupation|\bjobs?\b"),
    ("genre", r"\bgenre\b"),
    ("publication date", r"released? in the same year|same year"),
)


def _same_property(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer a question such as "Are A and B from the same country?" by the values of both things."""
    text = analysis.question.lower()
    if re.search(r"\bsame\b|\bshare\b", text):
        named = re.search(r"\bsame (province|state|county|district|region|municipality|city|town)\b", text)
        if named:
            return _same_area(named.group(1), things)
        for relation, pattern in _PROPERTIES:
            values = [best_fact(relation, analysis, thing.page) for thing in things[:2]]
            if re.search(pattern, text) and all(values):
                is_same = same_name(*values)
                because = "; ".join(f"{thing.name}: {value}" for thing, value in zip(things, values, strict=False))
                return Decision("yes" if is_same else "no", 0.75, because, _positions(*things[:2]))
    return None


def _shared_words(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer weakly: yes if the pages of both things contain the question's words, else no."""
    text = analysis.question.lower()
    verdicts = [_stated(analysis, thing, things) for thing in things[:2]]
    if not OF_BOTH.search(text) and " and " not in text:
        return verdicts[0]
    holds = all(verdict is not None and verdict.text == "yes" for verdict in verdicts)
    because = "; ".join(verdict.because for verdict in verdicts if verdict)
    return Decision("yes" if holds else "no", _BY_WORDS, because, _positions(*things[:2])) if all(verdicts) else None


def _same_area(noun: str, things: Sequence[Statement]) -> Decision | None:
    """Answer a question such as "Are A and B in the same province?" from the areas that their pages name."""
    pattern = re.compile(
        rf"({NAME}) [{noun[0].upper()}{noun[0]}]{noun[1:]}\b|\b[{noun[0].upper()}{noun[0]}]{noun[1:]} of ({NAME})"
    )
    values = []
    for thing in things[:2]:
        match = pattern.search(thing.page.lead.text) if thing.page.lead else None
        in_state = best_fact("state", QuestionAnalysis(noun, "state", "state", "", ""), thing.page)
        values.append((match.group(1) or match.group(2)) if match else in_state)
    if not all(values):
        return None
    is_same = same_name(*values)
    return Decision("yes" if is_same else "no", 0.7, "; ".join(values), _positions(*things[:2]))


def _stated(analysis: QuestionAnalysis, thing: Statement, things: Sequence[Statement] = ()) -> Decision | None:
    """Answer yes if a sentence on a thing's page has at least half of the question's words, else no.

    A denial in that sentence, or a name of the question that the page lacks, also makes the answer no.
    """
    titles = (thing.page.base, thing.name, *(other.name for other in things))
    names = {stem for title in titles for stem in sentence(title).stems}
    question_stems = content_stems(fold(analysis.question).partition(" ")[2]) - names - _FILLERS
    capitalised = {
        stem for word in analysis.question.split()[1:] if word[:1].isupper() and (stem := content_stem(fold(word)))
    }
    if not question_stems or not thing.page.sentences:
        return None
    share, best = max(
        ((len(question_stems & set(line.stems)) / len(question_stems), line) for line in thing.page.sentences),
        key=lambda pair: pair[0],
    )
    negated = bool(re.search(r"\b(?:not|never|no longer|n't)\b", best.text)) and not re.search(
        r"\b(?:not|never)\b", analysis.question
    )
    missing = (capitalised & question_stems) - {stem for line in thing.page.sentences for stem in line.stems}
    holds = share >= 0.5 and not negated and not missing
    return Decision("yes" if holds else "no", _BY_WORDS, f"“{best.text[:80]}”", _positions(thing))


_FILLERS = frozenset(
    content_stem(word)
    for word in words("""
    both same film movie person band type kind
""")
)
