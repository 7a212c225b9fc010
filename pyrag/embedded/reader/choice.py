"""Yes/no and either-or questions: two things compared by a date, a number or a shared property.

Works on statements, one text per thing compared: passages in evidence mode, the clauses of the facts in aggregation
mode. Comparing is done with parsed dates and numbers; what cannot be parsed is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.embedded.lexicon import words
from pyrag.embedded.question_analysis import QuestionAnalysis, analyse
from pyrag.embedded.reader.facts import FACTS
from pyrag.embedded.reader.patterns import NAME
from pyrag.embedded.reader.people import PageFact, by_cue
from pyrag.embedded.reader.view import View, view
from pyrag.embedded.words import content_stem, fold, sentence
from pyrag.trace.model import Passage
from pyrag_helpers.dates import parse_date
from pyrag_helpers.names import same_name
from pyrag_helpers.numbers import parse_quantity, quantities_in

_EARLY = r"\b(?:older|oldest|elder|eldest|first|earlier|earliest|before|prior)\b"
_LATE = r"\b(?:younger|youngest|later|latest|last|newer|newest|recent|recently|after)\b"
_MORE = (
    r"\b(?:more|most|larger|largest|bigger|biggest|higher|highest|taller|tallest|greater|greatest|longer|longest"
    r"|heavier|heaviest|deeper|deepest|wider|widest|faster|fastest|hotter|warmer)\b"
)
_LESS = (
    r"\b(?:fewer|fewest|less|least|smaller|smallest|lower|lowest|shorter|shortest|lighter|lightest|slower|slowest"
    r"|colder|cooler|cheaper)\b"
)
_MEASURES = (
    ("date of death", r"\b(?:die|died|death|passed away)\b"),
    ("date of birth", r"\b(?:born|birth|older|younger|oldest|youngest|elder|eldest)\b"),
    ("publication date", r"\b(?:release[ds]?|come out|came out|published|premiered?|aired|debuted)\b"),
    ("inception", r"\b(?:founded|formed|established|opened|started|created|built|launched|began)\b"),
    ("population", r"\b(?:population|populous|people|inhabitants)\b"),
)
_KINDS = (  # of quantities that a word compares
    (r"\b(?:heav|light|weigh)", {"mass"}),
    (r"\b(?:long|short|last)", {"length", "time"}),
    (r"\b(?:tall|deep|wide|high|low)", {"length"}),
    (r"\b(?:fast|slow)", {"speed"}),
    (r"\b(?:hotter|warmer|colder|cooler)", {"temperature"}),
    (r"\b(?:cheaper|costs?|expensive)\b", {"money"}),
)
OF_BOTH = re.compile(r"\b(?:same|share|both|common|also)\b", re.I)


_BY_WORDS = 0.4  # the confidence of a verdict that only counts shared words


class IncomparableError(ValueError):
    """Two values in units that cannot be compared, such as dollars and euros."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer reached by comparing; `because` is the sentence shown to people."""

    text: str
    confidence: float
    because: str
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The text about one of the things compared."""

    name: str
    page: View
    certain: float = 1.0


def about_option(option: str, passages: Sequence[Passage]) -> Statement | None:
    """Return the passage about an option: the one whose title it names best.

    Args:
        option: One of the things to choose from, as the question names it.
        passages: The passages to search; of equally good ones the first counts.

    Returns:
        The passage as a statement, or None where the best match is below 0.6.
    """
    analysis = QuestionAnalysis(option, "", "thing", option, "")
    pages = [view(position, passage, analysis) for position, passage in enumerate(passages)]
    best = max(pages, key=lambda page: (page.about, -page.position), default=None)
    return Statement(option, best, best.about) if best is not None and best.about >= 0.6 else None


def from_facts(names: Sequence[str], facts: str) -> list[Statement | None]:
    """Return for each name the stretch of the facts from its mention to the next name's.

    Args:
        names: Names to look for, in any case; the first mention counts.
        facts: Running text.

    Returns:
        As many as names, in their order; None for a name that the facts do not mention.
    """
    lowered = facts.lower()
    places = [lowered.find(name.lower()) for name in names]
    found: list[Statement | None] = []
    for name, place in zip(names, places, strict=True):
        if place < 0:
            found.append(None)
            continue
        stop = min((other for other in places if other > place), default=len(facts))
        text = facts[place:stop].strip(" ,;")
        text = re.sub(r"(?:\band|;|,)\s*$", "", text).strip()
        analysis = QuestionAnalysis(name, "", "thing", name, "")
        found.append(Statement(name, view(0, Passage("", name, text), analysis)))
    return found


def choose(analysis: QuestionAnalysis, options: Sequence[Statement | None]) -> Decision | None:
    """Choose the option that the question asks for, by date or number.

    Args:
        analysis: The question; its words say what is compared and whether the smaller or the larger counts.
        options: Exactly two; None for one of which nothing is known.

    Returns:
        The chosen one, or None where it cannot be computed or both are equal.

    Raises:
        IncomparableError: The values have units that cannot be compared.
    """
    first, second = options
    direction = _direction(analysis.question)
    if first is None or second is None or not direction:
        return None
    left, right = (_value(analysis, each) for each in (first, second))
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
    chosen = smaller if direction == "min" else larger
    because = f"{first.name}: {left[1]}; {second.name}: {right[1]}"
    return Decision(chosen.name, 0.9 * min(first.certain, second.certain), because, _positions(first, second))


def _positions(*statements: Statement) -> tuple[int, ...]:
    return tuple(dict.fromkeys(each.page.position for each in statements))


def _direction(question: str) -> str:
    """Return whether the smaller or the larger value is asked for: "min", "max", or "" where nothing is compared."""
    text = question.lower()
    if re.search(r"\b(?:lived? longer|longer life)\b", text):
        return "max"
    for pattern, direction in ((_LATE, "max"), (_EARLY, "min"), (_LESS, "min"), (_MORE, "max")):
        if re.search(pattern, text):
            return direction
    return ""


def _value(analysis: QuestionAnalysis, statement: Statement) -> tuple[Any, str] | None:
    text = analysis.question.lower()
    if re.search(r"\b(?:lived? longer|longer life)\b", text):
        return _lifespan(analysis, statement)
    by_date = bool(re.search(f"{_EARLY}|{_LATE}", text))
    named = [relation for relation, pattern in _MEASURES if re.search(pattern, text)]
    fallbacks = ["date of birth", "publication date", "inception"] if by_date else []
    for relation in dict.fromkeys((*named, *fallbacks)):
        found = best_fact(relation, analysis, statement.page)
        value = _parsed(found, parse_date) if by_date else None
        value = value if value is not None or by_date else _parsed(found, parse_quantity)
        if value is not None:
            return value, found
    if by_date and not named:
        return None
    whole = " ".join(each.text for each in statement.page.sentences)
    if len(whole) >= 200:
        return None
    shown = whole.replace(statement.name, " ")
    value = _parsed(shown, parse_date) if by_date else _measure(text, shown)
    return None if value is None else (value, whole[:60])


def _measure(question: str, text: str) -> Any:
    """Return the first quantity of a text that is of the kind compared, or else a bare number; None without one."""
    kinds = next((kinds for pattern, kinds in _KINDS if re.search(pattern, question)), None)
    quantities = quantities_in(text)
    if kinds is None:
        return next(iter(quantities), None)
    fitting = [each for each in quantities if each.unit.kind.split(" ")[0] in kinds]
    return next(iter(fitting or [each for each in quantities if not each.unit.kind]), None)


def _lifespan(analysis: QuestionAnalysis, statement: Statement) -> tuple[Any, str] | None:
    born, died = (best_fact(relation, analysis, statement.page) for relation in ("date of birth", "date of death"))
    start, end = _parsed(born, parse_date), _parsed(died, parse_date)
    return None if start is None or end is None else (end - start, f"{born} – {died}")


def _parsed(text: str, reader: Callable[[str], object]) -> Any:
    if not text:
        return None
    try:
        value = reader(text)
    except ValueError:
        return None
    ordinal = getattr(value, "toordinal", None)
    return float(ordinal()) if ordinal else value


def facts_of(relation: str, analysis: QuestionAnalysis, page: View) -> list[PageFact]:
    """Return all that a page says in answer to a relation; strongest first, earlier ones before later ones.

    Args:
        relation: Name of the relation; nothing is found for one without facts and cues.
        analysis: The question; it narrows the kind of answer.
        page: The page to read.
    """
    found = list(FACTS[relation](page, analysis)) if relation in FACTS else []
    found = found or list(by_cue(relation, page))
    return sorted(found, key=lambda each: -each.strength)


def best_fact(relation: str, analysis: QuestionAnalysis, page: View) -> str:
    """Return the text of the strongest fact, or "" where the page has none.

    Args:
        relation: The relation, as for `facts_of`.
        analysis: The question; it narrows the kind of answer.
        page: The page to read.
    """
    found = facts_of(relation, analysis, page)
    return found[0].text if found else ""


def decide(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer yes or no. Two things are compared, or their shared property is; of one thing, its page is asked.

    Args:
        analysis: The question.
        things: The things it is about; beyond two the rest is not looked at.

    Returns:
        The verdict, or None where nothing can be compared or read.
    """
    if len(things) >= 2:
        return compare(analysis, things) or _shared_words(analysis, things)
    return _stated(analysis, things[0]) if things else None


def compare(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Answer yes or no by a value of each of two things: which is the larger, or whether they are the same.

    Args:
        analysis: The question.
        things: At least two things; the rest is not looked at.
    """
    return _than(analysis, things) or _same_property(analysis, things)


def _than(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    match = re.search(r"\b(?:than|before|after)\b", analysis.question)
    if not match or not _direction(analysis.question):
        return None
    ordered = sorted(things[:2], key=lambda each: analysis.question.lower().find(each.name.lower()))
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
    """Return whether two things agree in the property asked ("the same country")."""
    text = analysis.question.lower()
    if re.search(r"\bsame\b|\bshare\b", text):
        named = re.search(r"\bsame (province|state|county|district|region|municipality|city|town)\b", text)
        if named:
            return _same_area(named.group(1), things)
        for relation, pattern in _PROPERTIES:
            values = [best_fact(relation, analyse(analysis.question), each.page) for each in things[:2]]
            if re.search(pattern, text) and all(values):
                same = same_name(*values)
                because = "; ".join(f"{each.name}: {value}" for each, value in zip(things, values, strict=False))
                return Decision("yes" if same else "no", 0.75, because, _positions(*things[:2]))
    return None


def _shared_words(analysis: QuestionAnalysis, things: Sequence[Statement]) -> Decision | None:
    """Return whether the pages of two things share the question's words; weak, since words are all that is compared."""
    text = analysis.question.lower()
    verdicts = [_stated(analysis, each, things) for each in things[:2]]
    if not OF_BOTH.search(text) and " and " not in text:
        return verdicts[0]
    holds = all(each is not None and each.text == "yes" for each in verdicts)
    because = "; ".join(each.because for each in verdicts if each)
    return Decision("yes" if holds else "no", _BY_WORDS, because, _positions(*things[:2])) if all(verdicts) else None


def _same_area(noun: str, things: Sequence[Statement]) -> Decision | None:
    """Return whether two pages name the same province (state, county …)."""
    pattern = re.compile(
        rf"({NAME}) [{noun[0].upper()}{noun[0]}]{noun[1:]}\b|\b[{noun[0].upper()}{noun[0]}]{noun[1:]} of ({NAME})"
    )
    values = []
    for each in things[:2]:
        match = pattern.search(each.page.lead.text) if each.page.lead else None
        in_state = best_fact("state", QuestionAnalysis(noun, "state", "state", "", ""), each.page)
        values.append((match.group(1) or match.group(2)) if match else in_state)
    if not all(values):
        return None
    same = same_name(*values)
    return Decision("yes" if same else "no", 0.7, "; ".join(values), _positions(*things[:2]))


def _stated(analysis: QuestionAnalysis, thing: Statement, things: Sequence[Statement] = ()) -> Decision | None:
    """Yes if a sentence has nearly all of what the question says of the thing, no if none comes near."""
    titles = (thing.page.base, thing.name, *(each.name for each in things))
    names = {stem for title in titles for stem in sentence(title).stems}
    asked = {
        found for word in fold(analysis.question).split()[1:] if (found := content_stem(word)) and found not in names
    }
    others = {
        stem for word in analysis.question.split()[1:] if word[:1].isupper() and (stem := content_stem(fold(word)))
    }
    asked = {stem for stem in asked if stem not in _FILLERS}
    if not asked or not thing.page.sentences:
        return None
    covered, best = max(
        ((len(asked & set(each.stems)) / len(asked), each) for each in thing.page.sentences), key=lambda pair: pair[0]
    )
    negated = bool(re.search(r"\b(?:not|never|no longer|n't)\b", best.text)) and not re.search(
        r"\b(?:not|never)\b", analysis.question
    )
    missing = (others & asked) - {stem for each in thing.page.sentences for stem in each.stems}
    holds = covered >= 0.5 and not negated and not missing
    return Decision("yes" if holds else "no", _BY_WORDS, f"“{best.text[:80]}”", _positions(thing))


_FILLERS = frozenset(
    content_stem(word)
    for word in words("""
    both same film movie person band type kind
""")
)
