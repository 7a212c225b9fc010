"""Doubts about an answer, which lower its confidence without rejecting it.

An answer is doubtful if its sentence has only names in common with the question, or if the evidence is from another
year.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.measures import MEASURED
from pyrag.embedded.lexicon.verbs import base_of, is_base, is_participle, is_past, is_present
from pyrag.embedded.lexicon.word_classes import DO
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.claims.opposites import is_among
from pyrag.embedded.reader.neural.times import other_year
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, Sentence, content_stem, holds, without_quotations

WEAK = 0.45  # maximum confidence of a doubtful answer
ASKING = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|many|much|long|name|title|kind|type|year|date|place|person|people"
    r"|country|city|called|named|exactly|still|there|take|took|get|got|make|made|go|went|come|came|like|know|known|happen"
    r"|happened|used|use|term|number|amount|total|currently|now)\b",
    re.IGNORECASE,
)


def doubt(analysis: QuestionAnalysis, page: View, answer: str, *, by_pattern: bool = False) -> str:
    """Return the reason why an answer is doubtful, or "".

    Args:
        analysis: Analysis of the question.
        page: Page of the answer.
        answer: Answer as it is on the page.
        by_pattern: True if a pattern for the question's relation matched the sentence, which is then relevant.
    """
    sentences = [sentence for sentence in page.sentences if holds(sentence.text, answer)]
    if not sentences:
        return ""
    years = [other_year(analysis.question, page, sentence) for sentence in sentences]
    if all(years):
        return years[0]
    return "" if by_pattern else _off_topic(analysis, page, sentences, answer)


def _off_topic(analysis: QuestionAnalysis, page: View, sentences: Sequence[Sentence], answer: str) -> str:
    """Return a reason if no sentence of the answer is about the question, else "".

    A sentence is about the question if it, or the sentence before it, has the question's verb or, without a verb,
    another word of the question.
    """
    question_words = _asked_words(analysis)
    verb = _verb(analysis.question)
    if not question_words or (_MEASURED.search(analysis.question) and re.search(r"\d", answer)):
        return ""
    is_supported = False
    for sentence in sentences:
        before = page.sentences[sentence.index - 1].lowers if sentence.index else ()
        nearby_words = (*sentence.lowers, *before)
        if not verb or is_among(verb, nearby_words) or _is_by(verb, sentence, answer):
            is_supported = bool(verb) or is_supported or any(is_among(word, nearby_words) for word in question_words)
    return "" if is_supported else f"its sentence says nothing of {verb or question_words[0]!r}"


def _is_by(verb: str, sentence: Sentence, answer: str) -> bool:
    """Return whether a sentence names the answer as the maker of a work, as in "a novel by Ines Valdar"."""
    return base_of(verb) in _MADE and bool(re.search(rf"\bby (?:[\w-]+ ){{0,4}}{re.escape(answer)}", sentence.text))


def _verb(question: str) -> str:
    """Return a question's verb if its position is clear, as in "Who founded …" and "When was … opened", else ""."""
    if match := _WHO_DID.match(question):
        word = match["verb"].lower()
        return word if (is_past(word) or is_present(word)) and base_of(word) not in _PLAIN_VERBS else ""
    match = _AUXILIARY.search(question)
    if match is None or (match["aux"].lower() not in DO and not _WHEN_OR_WHERE.match(question)):
        return ""
    words = [word.strip(",?.") for word in match["rest"].split()]
    is_form = is_base if match["aux"].lower() in DO else is_participle
    positions = [
        at for at in range(1, len(words)) if words[at].islower() and words[at - 1].lower() not in _BEFORE_NOUNS
    ]
    verbs = [words[at] for at in positions if is_form(words[at])]
    verb = verbs[-1] if verbs else ""
    return "" if (base_of(verb) or verb) in _PLAIN_VERBS else verb


_WHO_DID = re.compile(
    r"(?:who|which (?:[a-z]+ )?[a-z]+|what (?:[a-z]+ )?[a-z]+) (?!is |was |are |were |did |does |do |has |had )(?P<verb>[a-z]+) ",
    re.I,
)
_AUXILIARY = re.compile(
    r"\b(?:when|where|who|whom|what|which [a-z ]+?|what [a-z ]+?) (?P<aux>was|were|is|are|did|does|do) (?P<rest>.+)",
    re.I,
)
_WHEN_OR_WHERE = re.compile(r"(?:when|where) ", re.IGNORECASE)
_BEFORE_NOUNS = words("the a an of for to in on at by his her its their and or")
_PLAIN_VERBS = words(
    "be have do take get make go come give hold call name know locate use find happen mean play base born bear "
    "die set see become live place help want try seem appear continue situate spell show like say tell work "
    "belong"
)
_MADE = words(
    "write direct compose design paint create publish produce perform sing record develop build draw edit "
    "author invent sculpt illustrate translate arrange release"
)
_MEASURED = re.compile(
    rf"\bhow (?:much|{any_of(MEASURED)})\b|\b(?:weight|height|length|price|cost)\b",
    re.IGNORECASE,
)


def _asked_words(analysis: QuestionAnalysis) -> list[str]:
    """Return the words of the question that are neither names nor question words."""
    words = [word.strip("'’\",?.") for word in ASKING.sub(" ", without_quotations(analysis.question)).split()]
    lower_case = [word for word in words if word and word.islower() and word.isalpha() and word not in STOPWORDS]
    return [word for word in lower_case if content_stem(word)]
