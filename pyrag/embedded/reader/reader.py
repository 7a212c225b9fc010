"""Lexical reader, which answers by patterns of known relations, and by comparing dates, numbers and names.

It is deterministic, uses no model and keeps nothing between questions. It reads one fact at a time; joining facts is
the job of the program. Questions that no pattern answers are left to the neural answerer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon.regions import ADJECTIVES
from pyrag.embedded.question_analysis import QuestionAnalysis, analyse, split_aggregation
from pyrag.embedded.reader.choice import (
    OF_BOTH,
    Decision,
    IncomparableError,
    Statement,
    about_option,
    choose,
    compare,
    decide,
    facts_of,
    from_facts,
)
from pyrag.embedded.reader.claims.lookups import Ask
from pyrag.embedded.reader.claims.verdict import verdict_on
from pyrag.embedded.reader.people import in_full
from pyrag.embedded.reader.view import View, view, views
from pyrag.embedded.words import SINGLE_NAME_RUN, STOPWORDS, content_stems, fold
from pyrag.trace.model import UNKNOWN, Passage

# Minimum of a pattern's reliability times the page's relevance. It is low because a wrong "unknown" costs a repair and
# usually the answer: an answer just above the threshold pays off if it is right one time in four.
PATTERN_THRESHOLD = 0.25
_MIN_ABOUT = 0.2  # pages that match the question's subject less are not read
_MIN_SUPPORT = 0.25  # share of the question's words that must stand near an option


def read(query: str, passages: Sequence[Passage] | None, eagerness: float = 1.0) -> Reading:
    """Answer a question by patterns of known relations, or by comparing dates, numbers and names.

    Args:
        query: Question. Without passages, "Given: FACTS. Answer the question: QUESTION".
        passages: Passages to read. None to read the facts in the query.
        eagerness: Factor on the confidence before it is compared with the threshold. Values above 1 give fewer unknown
            answers.

    Returns:
        The answer with the passage it is from. Unknown if no answer is certain enough, or if two values have units that
        cannot be compared.
    """
    if passages is None:
        try:
            return _aggregate(query)
        except IncomparableError as error:
            return _unknown(str(error))
    analysis = analyse(query)
    return read_views(analysis, views(analysis, passages), passages, eagerness)


def read_views(
    analysis: QuestionAnalysis,
    pages: list[View],
    passages: Sequence[Passage],
    eagerness: float = 1.0,
    ask: Ask | None = None,
) -> Reading:
    """Answer an analysed question from passages that are already split into sentences; see `read`.

    Args:
        analysis: Analysis of the question.
        pages: View of each passage, in the order of `passages`.
        passages: Passages of the views.
        eagerness: Factor on the confidence before it is compared with the threshold. Values above 1 give fewer unknown
            answers.
        ask: Function that answers another question from the same passages, for yes/no questions about a value. None to
            use only statements in sentences.
    """
    if not analysis.question or not pages:
        return _unknown("there are no passages to read")
    try:
        if analysis.kind == "choice":
            return _choice(analysis, [about_option(option, passages) for option in analysis.options], pages)
        if analysis.kind == "yesno":
            return _yes_or_no(analysis, pages, ask)
    except IncomparableError as error:
        return _unknown(str(error))
    return by_pattern(analysis, pages, eagerness) or _unknown("no pattern of a known relation finds an answer")


def _yes_or_no(analysis: QuestionAnalysis, pages: list[View], ask: Ask | None) -> Reading:
    """Answer by comparing two things, by a sentence about one thing, or (weakly) by shared words."""
    things = _named_things(analysis, pages)
    compared = compare(analysis, things) if len(things) >= 2 else None
    if compared is not None:
        return _verdict(compared) or _unknown("")
    verdict = None if OF_BOTH.search(analysis.question) else verdict_on(analysis.question, pages, ask)
    if verdict is not None:
        return verdict
    return _verdict(decide(analysis, things)) or _unknown("no passage is about what is asked")


def by_pattern(analysis: QuestionAnalysis, pages: Sequence[View], eagerness: float = 1.0) -> Reading | None:
    """Return the answer of a pattern for the question's relation, if it is certain enough.

    Args:
        analysis: Analysis of the question.
        pages: Pages to read.
        eagerness: Factor on the confidence before it is compared with `PATTERN_THRESHOLD`.

    Returns:
        The answer, or None if no pattern is certain enough.
    """
    reading = _by_relation(analysis, pages)
    return reading if reading and (reading.confidence or 0.0) * eagerness >= PATTERN_THRESHOLD else None


def _by_relation(analysis: QuestionAnalysis, pages: Sequence[View]) -> Reading | None:
    """Return the strongest answer of a pattern for the question's relation on a page about its subject."""
    best: tuple[float, Reading] | None = None
    if not analysis.relation:
        return None
    for page in pages:
        if page.about < _MIN_ABOUT:
            continue
        for fact in facts_of(analysis.relation, analysis, page):
            score = round(fact.strength * page.about, 4)
            if (best is None or score > best[0]) and fold(fact.text):
                text = in_full(fact.text, page) if analysis.kind == "person" else _as_asked(analysis, fact.text)
                sentence = page.sentences[fact.sentence].text[:120]
                rationale = f"“{sentence}” of [{page.position + 1}] matches “{fact.cue}” ({analysis.relation})"
                best = score, Reading(text, True, (page.position,), rationale, min(score, 1.0))
    return best[1] if best else None


def _as_asked(analysis: QuestionAnalysis, text: str) -> str:
    """Return the country for an adjective such as "Swedish" if the question asks "which country"."""
    return ADJECTIVES.get(text, text) if analysis.head in ("country", "nation") else text


def _unknown(rationale: str) -> Reading:
    return Reading(UNKNOWN, False, (), rationale, 0.0)


def _verdict(decision: Decision | None) -> Reading | None:
    """Return a decision as a reading."""
    if decision is None:
        return None
    return Reading(decision.text, True, decision.pages, decision.because, round(decision.confidence, 4))


def _choice(analysis: QuestionAnalysis, options: list[Statement | None], pages: list[View]) -> Reading:
    """Choose between two options by a date or number, or (weakly) by the words near each."""
    verdict = _verdict(choose(analysis, options))
    if verdict:
        return verdict
    supports = [_support(analysis, option, pages) for option in analysis.options]
    best = max(range(len(supports)), key=lambda index: supports[index][0])
    if supports[best][0] < _MIN_SUPPORT or supports[0][0] == supports[-1][0]:
        return _unknown("the passages do not tell the two apart")
    page = supports[best][1]
    return Reading(
        analysis.options[best],
        True,
        (page,),
        f"[{page + 1}] says most of what is asked of it",
        round(min(supports[best][0], 1.0) / 2, 4),
    )


def _support(analysis: QuestionAnalysis, option: str, pages: list[View]) -> tuple[float, int]:
    """Return how well the pages support an option, and the position of the page that supports it best.

    The support is the highest share of the question's words in a sentence that names the option or is on its own page.
    """
    option_stems = {stem for name in analysis.options for stem in content_stems(name)}
    question_stems = content_stems(analysis.question) - option_stems
    best = (0.0, 0)
    for page in pages:
        for sentence in page.sentences:
            if fold(option) in fold(sentence.text) or fold(option) == fold(page.base):
                share = len(question_stems & set(sentence.stems)) / max(len(question_stems), 1)
                best = max(best, (share, page.position), key=lambda pair: pair[0])
    return best


def _named_things(analysis: QuestionAnalysis, pages: list[View]) -> list[Statement]:
    """Return the pages whose titles occur in the question, in the order of the question.

    A title that is part of a longer title is left out. If the question names no title, the page that contains all of
    its names is returned.
    """
    question = f" {analysis.folded} "
    by_title = {
        page.base: Statement(page.base, page, page.about)
        for page in reversed(pages)
        if len(fold(page.base)) > 2 and f" {fold(page.base)} " in question
    }
    titles = {fold(thing.name) for thing in by_title.values()}
    things = [
        thing
        for thing in by_title.values()
        if not any(title != fold(thing.name) and fold(thing.name) in title for title in titles)
    ]
    if not things:
        best = max(pages, key=lambda page: (_names_seen(analysis, page), -page.position))
        return [Statement(best.base, best, 0.5)] if _names_seen(analysis, best) == 1.0 else []
    return sorted(things, key=lambda thing: question.find(fold(thing.name)))


def _aggregate(query: str) -> Reading:
    """Answer a query of the form "Given: … Answer the question: …" from its facts."""
    facts, question = split_aggregation(query)
    analysis = analyse(question)
    if not facts:
        return _unknown("there are no facts to answer from")
    if analysis.kind == "choice":
        verdict = _verdict(choose(analysis, from_facts(analysis.options, facts)))
        if verdict:
            return _uncited(verdict)
    if analysis.kind == "yesno":
        names = _capitalised(analysis.question, facts)
        things = [thing for thing in from_facts(names, facts) if thing]
        stated = None if len(things) > 1 else verdict_on(question, [view(0, Passage("facts", "", facts), analysis)])
        return _uncited(
            stated or _verdict(decide(analysis, things)) or _unknown("the facts do not decide the question")
        )
    return _from_fact(analysis, facts)


def _uncited(reading: Reading) -> Reading:
    """Return a reading without citations: facts in a query have no passage."""
    return Reading(reading.text, reading.known, (), reading.rationale, reading.confidence)


def _capitalised(question: str, facts: str) -> list[str]:
    """Return a question's capitalised names that also occur in the facts."""
    names, lowered = dict.fromkeys(run.strip(" .?") for run in SINGLE_NAME_RUN.findall(question[1:])), facts.lower()
    return [name for name in names if name and name.lower() in lowered]


def _from_fact(analysis: QuestionAnalysis, facts: str) -> Reading:
    """Answer from the facts in a query: a short fact is the answer itself, other facts are read by patterns."""
    page = view(0, Passage("facts", analysis.subject, facts), analysis)
    if len(facts.split()) <= 6 and not re.search(r"\b(?:is|was|are|were|has|had)\b|:", facts):
        return Reading(facts.strip(" ."), True, (), "the only fact given", 0.5)
    reading = _by_relation(analysis, [page]) if analysis.relation else None
    return _uncited(reading) if reading else _unknown("the facts do not answer the question")


def _names_seen(analysis: QuestionAnalysis, page: View) -> float:
    """Return the share of the question's capitalised words and numbers that a page has.

    It is 1 if the question has no such words.
    """
    names = {
        word
        for token in analysis.question.split()[1:]
        if token[:1].isupper() or token[:1].isdigit() or token[:1] in '"“'
        for word in fold(token).split()
        if word not in STOPWORDS
    }
    if not names:
        return 1.0
    page_words = {part for sentence in page.sentences for word in sentence.lowers for part in fold(word).split()} | set(
        fold(page.title).split()
    )
    return sum(word in page_words or word.removesuffix("s") in page_words for word in names) / len(names)
