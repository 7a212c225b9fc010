"""View of a passage for the reader: its sentences, its title without qualifier, and its match with the question.

A page is about its title. Therefore the match of the question's subject with the title is the strongest evidence of
the lexical reader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.embedded.lexicon.people import HONORIFICS
from pyrag.embedded.lexicon.word_classes import ARTICLES
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.words import STOPWORDS, Sentence, fold, sentences
from pyrag.trace.model import Passage
from pyrag.trace.sentences import tidy

_QUALIFIER = re.compile(r"\s*\(([^()]*)\)\s*$")


@dataclass(frozen=True, slots=True)
class View:
    """Passage that is ready for reading.

    Args:
        position: Position of the passage, from 0.
        title: Title of the passage.
        base: Title without its qualifier: "Crash" for "Crash (1996 film)".
        sentences: Sentences of the passage.
        about: Certainty that the passage is the page of the question's subject, in [0, 1].
    """

    position: int
    title: str
    base: str
    sentences: tuple[Sentence, ...]
    about: float

    @property
    def lead(self) -> Sentence | None:
        """First sentence of the passage."""
        return self.sentences[0] if self.sentences else None


def views(analysis: QuestionAnalysis, passages: Sequence[Passage]) -> list[View]:
    """Return a view of each passage. Positions count from 0.

    Args:
        analysis: Analysis of the question, whose subject is compared with the titles.
        passages: Passages, in the order in which answers cite them.
    """
    return [view(position, passage, analysis) for position, passage in enumerate(passages)]


def view(position: int, passage: Passage, analysis: QuestionAnalysis) -> View:
    """Return the view of a passage.

    Args:
        position: Position of the passage, from 0.
        passage: Passage to split into sentences.
        analysis: Analysis of the question, whose subject is compared with the title.
    """
    title = tidy(passage.title)
    lines = tuple(sentences(passage.text))
    base = _QUALIFIER.sub("", title).strip() or title
    return View(position, title, base, lines, _about(title, base, analysis, lines[0] if lines else None))


def _words(text: str) -> list[str]:
    """Return the words of a name without articles and small words."""
    return [word for word in fold(text).split() if word not in ("the", "a", "an", "of", "and", "s", "de")]


def _about(title: str, base: str, analysis: QuestionAnalysis, lead: Sentence | None) -> float:
    """Return 1 for the page that a question names, less if it names only a part of the title, and 0 for other pages."""
    question, folded = analysis.folded, fold(base)
    if not folded:
        return 0.0
    score = 0.0
    if f" {folded} " in f" {question} " and not (len(folded) < 3 or folded in STOPWORDS):
        score = 0.9 if len(folded.split()) > 1 or not analysis.subject or folded == fold(analysis.subject) else 0.45
        if analysis.subject and fold(analysis.subject) == folded:
            score = 0.95
        elif analysis.subject and score == 0.9:
            score *= _coverage(analysis.subject, folded)
        qualifier = fold(title[len(base) :])
        if qualifier:
            shared = [word for word in qualifier.split() if f" {word} " in f" {question} "]
            score += 0.05 if len(shared) == len(qualifier.split()) else (0.0 if shared else -0.02)
    if score < 0.9 and analysis.subject and "," in base and fold(base.split(",")[0]) == fold(analysis.subject):
        score = max(score, 0.85)
    if score < 0.9 and analysis.subject:
        score = max(score, _name_match(analysis.subject, base), _lead_match(analysis.subject, lead))
    return min(score, 1.0)


def _coverage(subject: str, folded_title: str) -> float:
    """Return the share of a subject's capitalised words that are in a title.

    It is low for the subject "Long Black Limousine" and the title "Limousine".
    """
    words = {fold(word) for word in subject.split() if word[:1].isupper() or word[:1].isdigit()} - {"", *ARTICLES}
    title_words = set(folded_title.split())
    return sum(set(word.split()) <= title_words for word in words) / len(words) if words else 1.0


def _name_match(subject: str, title: str) -> float:
    """Return how well two names match; middle names, suffixes and honorifics may differ."""
    subject_words = [word for word in _words(_QUALIFIER.sub("", subject)) if word not in HONORIFICS]
    title_words = [word for word in _words(title) if word not in HONORIFICS]
    if not subject_words or not title_words:
        return 0.0
    if subject_words == title_words:
        return 0.92
    common = set(subject_words) & set(title_words)
    if len(common) == min(len(set(subject_words)), len(set(title_words))):
        ratio = len(common) / max(len(subject_words), len(title_words))
        return 0.35 + 0.5 * ratio if len(common) > 1 or ratio >= 0.5 else 0.25
    if subject_words[-1] == title_words[-1] and subject_words[0] == title_words[0]:
        return 0.7
    jaccard = len(common) / len(set(subject_words) | set(title_words))
    return 0.8 * jaccard if jaccard > 0.5 else 0.0


def _lead_match(subject: str, lead: Sentence | None) -> float:
    """Return the certainty that a page gives the subject as its other name, as in "X, better known as Y, was"."""
    subject_words = [word for word in _words(subject) if word not in HONORIFICS]
    if lead is None or not subject_words:
        return 0.0
    before_verb = " ".join(_words(re.split(r"\b(?:is|was|are|were)\b", lead.text, maxsplit=1)[0][:200]))
    if " ".join(subject_words) in before_verb:
        return 0.8 if len(subject_words) > 1 else 0.4
    return 0.7 if len(subject_words) > 1 and all(word in before_verb.split() for word in subject_words) else 0.0
