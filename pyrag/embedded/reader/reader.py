"""Answers by patterns of known relations, and by comparing dates, numbers and names; unknown where neither applies.

Deterministic, without a model; holds nothing between questions. It reads one fact at a time: joining facts is the
program's job. The neural answerer reads what no pattern answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon import ADJECTIVES
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
from pyrag.embedded.words import STOPWORDS, content_stem, fold
from pyrag.trace.model import UNKNOWN, Passage

# Chosen for the exact match of whole programs on training questions, repairs and further passages included: a false
# unknown costs a repair and mostly the answer, so about one in four answers just above a threshold need be right.
PATTERN_THRESHOLD = 0.25  # a pattern's reliability times how surely the page is the right one


def read(query: str, passages: Sequence[Passage] | None, eagerness: float = 1.0) -> Reading:
    """Answer a question by patterns of known relations and by comparing dates, numbers and names.

    Args:
        query: The question; without passages, "Given: FACTS. Answer the question: QUESTION".
        passages: The passages to read, or None to read the query's own facts.
        eagerness: Factor on the evidence; above 1 the answer is unknown less often.
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
    """Do as `read` for a question and passages that were made ready before.

    Args:
        analysis: The question.
        pages: A view of each passage, in the order of `passages`.
        passages: The passages themselves.
        eagerness: Factor on the evidence; above 1 the answer is unknown less often.
        ask: Answers a further question from the same passages, for a yes/no question that a value decides.
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
    """Answer by comparing two things, by what is stated of one, or weakly by the words that a passage shares."""
    things = _named_things(analysis, pages)
    compared = compare(analysis, things) if len(things) >= 2 else None
    if compared is not None:
        return _verdict(compared) or _unknown("")
    verdict = None if OF_BOTH.search(analysis.question) else verdict_on(analysis.question, pages, ask)
    if verdict is not None:
        return verdict
    return _verdict(decide(analysis, things)) or _unknown("no passage is about what is asked")


def by_pattern(analysis: QuestionAnalysis, pages: Sequence[View], eagerness: float = 1.0) -> Reading | None:
    """Return the finding of a pattern of the question's relation, if it is sure enough to stand by itself.

    Args:
        analysis: The question.
        pages: The pages to read.
        eagerness: Factor on the confidence before it is held against `PATTERN_THRESHOLD`.

    Returns:
        The reading, or None where no pattern is sure enough.
    """
    found = _by_relation(analysis, pages)
    return found if found and (found.confidence or 0.0) * eagerness >= PATTERN_THRESHOLD else None


def _by_relation(analysis: QuestionAnalysis, pages: Sequence[View]) -> Reading | None:
    """The strongest answer that a pattern of the question's relation finds on a page about its subject."""
    best: tuple[float, Reading] | None = None
    if not analysis.relation:
        return None
    for page in pages:
        if page.about < 0.2:
            continue
        for each in facts_of(analysis.relation, analysis, page):
            score = round(each.strength * page.about, 4)
            if (best is None or score > best[0]) and fold(each.text):
                text = in_full(each.text, page) if analysis.kind == "person" else _as_asked(analysis, each.text)
                sentence = page.sentences[each.sentence].text[:120]
                said = f"“{sentence}” of [{page.position + 1}] matches “{each.cue}” ({analysis.relation})"
                best = score, Reading(text, True, (page.position,), said, min(score, 1.0))
    return best[1] if best else None


def _as_asked(analysis: QuestionAnalysis, text: str) -> str:
    """The country itself where the question says "which country" and the page has only an adjective of it."""
    return ADJECTIVES.get(text, text) if analysis.head in ("country", "nation") else text


def _unknown(why: str) -> Reading:
    return Reading(UNKNOWN, False, (), why, 0.0)


def _verdict(found: Decision | None) -> Reading | None:
    return Reading(found.text, True, found.pages, found.because, round(found.confidence, 4)) if found else None


def _choice(analysis: QuestionAnalysis, options: list[Statement | None], pages: list[View]) -> Reading:
    compared = _verdict(choose(analysis, options))
    if compared:
        return compared
    scored = [_support(analysis, option, pages) for option in analysis.options]
    best = max(range(len(scored)), key=lambda index: scored[index][0])
    if scored[best][0] < 0.25 or scored[0][0] == scored[-1][0]:
        return _unknown("the passages do not tell the two apart")
    page = scored[best][1]
    return Reading(
        analysis.options[best],
        True,
        (page,),
        f"[{page + 1}] says most of what is asked of it",
        round(min(scored[best][0], 1.0) / 2, 4),
    )


def _support(analysis: QuestionAnalysis, option: str, pages: list[View]) -> tuple[float, int]:
    """Return the share of the question's words that is said in sentences that name the option, or on its own page."""
    names = {stem for each in analysis.options for stem in _stems(each)}
    asked = _stems(analysis.question) - names
    best = (0.0, 0)
    for page in pages:
        for each in page.sentences:
            if fold(option) in fold(each.text) or fold(option) == fold(page.base):
                share = len(asked & set(each.stems)) / max(len(asked), 1)
                best = max(best, (share, page.position), key=lambda pair: pair[0])
    return best


def _stems(text: str) -> set[str]:
    return {stem for word in fold(text).split() if (stem := content_stem(word))}


def _named_things(analysis: QuestionAnalysis, pages: list[View]) -> list[Statement]:
    """The pages whose titles the question names, in the order in which it names them."""
    question = f" {analysis.folded} "
    found = {
        page.base: Statement(page.base, page, page.about)
        for page in reversed(pages)
        if len(fold(page.base)) > 2 and f" {fold(page.base)} " in question
    }
    kept = [
        each
        for each in found.values()
        if not any(fold(each.name) != fold(o.name) and fold(each.name) in fold(o.name) for o in found.values())
    ]
    if not kept:
        close = max(pages, key=lambda page: (_names_seen(analysis, page), -page.position))
        return [Statement(close.base, close, 0.5)] if _names_seen(analysis, close) == 1.0 else []
    return sorted(kept, key=lambda each: question.find(fold(each.name)))


def _aggregate(query: str) -> Reading:
    """Answers from the facts of "Given: … Answer the question: …"."""
    facts, question = split_aggregation(query)
    analysis = analyse(question)
    if not facts:
        return _unknown("there are no facts to answer from")
    if analysis.kind == "choice":
        compared = _verdict(choose(analysis, from_facts(analysis.options, facts)))
        if compared:
            return _uncited(compared)
    if analysis.kind == "yesno":
        names = _capitalised(analysis.question, facts)
        things = [each for each in from_facts(names, facts) if each]
        stated = None if len(things) > 1 else verdict_on(question, [view(0, Passage("facts", "", facts), analysis)])
        return _uncited(
            stated or _verdict(decide(analysis, things)) or _unknown("the facts do not decide the question")
        )
    return _from_fact(analysis, facts)


def _uncited(reading: Reading) -> Reading:
    return Reading(reading.text, reading.known, (), reading.rationale, reading.confidence)


def _capitalised(question: str, facts: str) -> list[str]:
    """Names that stand both in the question and in the facts, longest first found."""
    runs = re.findall(
        r"(?:[^\W\d_a-z][\w'’.-]*)(?:\s+(?:(?:of|the|de|la|von|van|to)\s+)*[^\W\d_a-z][\w'’.-]*)*", question[1:]
    )
    names, lowered = dict.fromkeys(run.strip(" .?") for run in runs), facts.lower()
    return [name for name in names if name and name.lower() in lowered]


def _from_fact(analysis: QuestionAnalysis, facts: str) -> Reading:
    page = view(0, Passage("facts", analysis.subject, facts), analysis)
    if len(facts.split()) <= 6 and not re.search(r"\b(?:is|was|are|were|has|had)\b|:", facts):
        return Reading(facts.strip(" ."), True, (), "the only fact given", 0.5)
    found = _by_relation(analysis, [page]) if analysis.relation else None
    return _uncited(found) if found else _unknown("the facts do not answer the question")


def _names_seen(analysis: QuestionAnalysis, page: View) -> float:
    """Share of the capitalised words and numbers of the question that the page has; 1 where there are none."""
    wanted = {
        word
        for token in analysis.question.split()[1:]
        if token[:1].isupper() or token[:1].isdigit() or token[:1] in '"“'
        for word in fold(token).split()
        if word not in STOPWORDS
    }
    if not wanted:
        return 1.0
    there = {part for each in page.sentences for word in each.lowers for part in fold(word).split()} | set(
        fold(page.title).split()
    )
    return sum(word in there or word.removesuffix("s") in there for word in wanted) / len(wanted)
