"""Doubts about an answer: what makes it weak without showing that it is wrong.

A sentence that has nothing of what the question asks beside the name, or that is from another year, may still answer; it
is shown with a confidence that marks it as weak.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.reader.neural.times import other_year
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, Sentence, content_stem, fold

WEAK = 0.45  # the most that an answer in doubt is worth
_ASKING = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|many|much|long|name|title|kind|type|year|date|place|person|people"
    r"|country|city|called|named|exactly|still|there|take|took|get|got|make|made|go|went|come|came|like|know|known|happen"
    r"|happened|used|use|term|number|amount|total|currently|now)\b",
    re.IGNORECASE,
)


def doubt(analysis: QuestionAnalysis, page: View, answer: str, *, by_pattern: bool = False) -> str:
    """Return what makes an answer doubtful, or "".

    Args:
        analysis: The question.
        page: The passage of the answer.
        answer: The answer as it stands there.
        by_pattern: It was found by a pattern of the question's own relation, so that its sentence is to the point.
    """
    holding = [each for each in page.sentences if f" {fold(answer)} " in f" {fold(each.text)} "]
    if not holding:
        return ""
    years = [other_year(analysis.question, page, each) for each in holding]
    if all(years):
        return years[0]
    return "" if by_pattern else _beside_the_point(analysis, page, holding)


def _beside_the_point(analysis: QuestionAnalysis, page: View, holding: Sequence[Sentence]) -> str:
    """The sentence and its neighbour have no word of the question but its names."""
    asked = _asked_words(analysis)
    if not asked:
        return ""
    for each in holding:
        before = page.sentences[each.index - 1].lowers if each.index else ()
        if any(are_alike(word, there) for word in asked for there in (*each.lowers, *before)):
            return ""
    return f"its sentence says nothing of {asked[0]!r}"


def _asked_words(analysis: QuestionAnalysis) -> list[str]:
    """The words of the question that are neither names nor asking words."""
    plain = re.sub(r"[\"“][^\"”]*[\"”]", " ", analysis.question)
    words = [word.strip("'’\",?.") for word in _ASKING.sub(" ", plain).split()]
    small = [word for word in words if word and word.islower() and word.isalpha() and word not in STOPWORDS]
    return [word for word in small if content_stem(word)]
