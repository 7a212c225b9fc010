"""A passage as the reader sees it: sentences, the title without its qualifier, and how well it fits a subject.

The match of a question's entity with a title is the strongest evidence a lexical reader has: a page is about its title.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.embedded.lexicon import HONORIFICS
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.words import STOPWORDS, Sentence, fold, sentences
from pyrag.trace.model import Passage
from pyrag.trace.sentences import tidy

_QUALIFIER = re.compile(r"\s*\(([^()]*)\)\s*$")


@dataclass(frozen=True, slots=True)
class View:
    """A passage made ready. `about` in [0, 1] says how surely the passage is the page of the question's subject."""

    position: int
    title: str
    base: str
    sentences: tuple[Sentence, ...]
    about: float

    @property
    def lead(self) -> Sentence | None:
        return self.sentences[0] if self.sentences else None


def views(analysis: QuestionAnalysis, passages: Sequence[Passage]) -> list[View]:
    """Make passages ready; their positions count from 0.

    Args:
        analysis: The question; each view says how well its passage fits the subject.
        passages: The passages, in the order in which answers cite them.
    """
    return [view(position, passage, analysis) for position, passage in enumerate(passages)]


def view(position: int, passage: Passage, analysis: QuestionAnalysis) -> View:
    """Make a passage ready: sentences, the title without its qualifier, and how well it fits the question's subject.

    Args:
        position: Number of the passage, from 0, for citations.
        passage: The passage.
        analysis: The question.
    """
    title = tidy(passage.title)
    found = tuple(sentences(passage.text))
    base = _QUALIFIER.sub("", title).strip() or title
    return View(position, title, base, found, _about(title, base, analysis, found[0] if found else None))


def _words(text: str) -> list[str]:
    return [word for word in fold(text).split() if word not in ("the", "a", "an", "of", "and", "s", "de")]


def _about(title: str, base: str, analysis: QuestionAnalysis, lead: Sentence | None) -> float:
    """1 for the page named in the question, less for part of a name, 0 for a page about something else."""
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
            shared = [w for w in qualifier.split() if f" {w} " in f" {question} "]
            score += 0.05 if len(shared) == len(qualifier.split()) else (0.0 if shared else -0.02)
    if score < 0.9 and analysis.subject and "," in base and fold(base.split(",")[0]) == fold(analysis.subject):
        score = max(score, 0.85)
    if score < 0.9 and analysis.subject:
        score = max(score, _name_match(analysis.subject, base), _lead_match(analysis.subject, lead))
    return min(score, 1.0)


def _coverage(subject: str, folded_title: str) -> float:
    """Share of the subject's capitalised words in a title: "Limousine" is not the page of "Long Black Limousine"."""
    words = {fold(word) for word in subject.split() if word[:1].isupper() or word[:1].isdigit()} - {
        "",
        "the",
        "a",
        "an",
    }
    inside = set(folded_title.split())
    return sum(set(word.split()) <= inside for word in words) / len(words) if words else 1.0


def _name_match(subject: str, title: str) -> float:
    """Names that differ by middle names, suffixes or honorifics; 0 where a surname or number differs."""
    left = [w for w in _words(_QUALIFIER.sub("", subject)) if w not in HONORIFICS]
    right = [w for w in _words(title) if w not in HONORIFICS]
    if not left or not right:
        return 0.0
    if left == right:
        return 0.92
    common = set(left) & set(right)
    if len(common) == min(len(set(left)), len(set(right))):
        ratio = len(common) / max(len(left), len(right))
        return 0.35 + 0.5 * ratio if len(common) > 1 or ratio >= 0.5 else 0.25
    if left[-1] == right[-1] and left[0] == right[0]:
        return 0.7
    jaccard = len(common) / len(set(left) | set(right))
    return 0.8 * jaccard if jaccard > 0.5 else 0.0


def _lead_match(subject: str, lead: Sentence | None) -> float:
    """The subject is another name of the page, given in its first words: "X, better known as Y"."""
    wanted = [w for w in _words(subject) if w not in HONORIFICS]
    if lead is None or not wanted:
        return 0.0
    head = " ".join(_words(re.split(r"\b(?:is|was|are|were)\b", lead.text, maxsplit=1)[0][:200]))
    if " ".join(wanted) in head:
        return 0.8 if len(wanted) > 1 else 0.4
    return 0.7 if len(wanted) > 1 and all(word in head.split() for word in wanted) else 0.0
