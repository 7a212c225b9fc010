"""Figures with what they are about: whether a figure's sentence is about the thing and time of a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyrag.embedded.lexicon import words
from pyrag.embedded.reader.checks.quantity_asked import unit_of
from pyrag.embedded.reader.claims.opposites import are_alike
from pyrag.embedded.words import STOPWORDS, fold
from pyrag.trace.sentences import split_sentences
from pyrag_helpers.measures.amounts import read_amounts

_SUBJECT = re.compile(
    r"\b(?:do|does|did|has|have|had|is|are|was|were|can|will|could)\s+(?:the|our|my|a|an|this|that)\s+(?P<subject>[^?,]+)"
    r"|\b(?:of|for|in|by|at)\s+(?:the|our|my|this|that)\s+(?P<object>[^?,]+)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"(?:it|its|they|their|he|she|his|her|this|these|that|those|there|both|here)\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_TIME_ASKED = re.compile(
    r"\b(?:(?:1[89]|20)\d\d|year|latest|last|first|today|now|currently|ever|most|average|total|altogether|when|since)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\s*(?:[-*+•|#]|\d+[.)]\s)|[^\W\d_]: .*[;|] ?[^\W\d_]+: ")
_VERBS = words("give gave make made use used have has had get take need hold cost weigh measure produce run go come do")


def other_subject(question: str, title: str, text: str, evidence: Sequence[str], answer: str) -> str:
    """Return why a figure is about another thing or one of several times, or "".

    Only sentences of prose are judged, since a row or an entry of a list has its subject elsewhere.

    Args:
        question: The question.
        title: Title of the passage.
        text: Text of the passage.
        evidence: Pieces of the text that hold the answer.
        answer: The answer.
    """
    asked = _subject_words(question)
    if not asked or not _FIGURE.search(answer) or any(_LISTED.match(piece) for piece in evidence):
        return ""
    sentences = list(_sentences(text))
    missing = [_missing(asked, f"{title} {context}", text) for context in _contexts(sentences, evidence)]
    if missing and all(missing):
        return f"the figure's sentence does not name the {missing[0]}, and another sentence does"
    return _of_one_time(question, asked, sentences, answer)


def _subject_words(question: str) -> list[str]:
    """Return the words of the thing that a question asks about: "plum", "tree"."""
    match = _SUBJECT.search(question)
    if match is None:
        return []
    parts = fold(match["subject"] or match["object"]).split()
    end = next((at for at, word in enumerate(parts) if word in ("in", "on", "at", "per", "during", "than")), len(parts))
    return [word for word in parts[:end] if word not in STOPWORDS and word not in _VERBS and not unit_of(word)]


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not _LISTED.match(line):
            yield from (line[start:stop] for start, stop in split_sentences(line))


def _contexts(sentences: Sequence[str], evidence: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the evidence, each with those before it that a pronoun refers to."""
    for piece in evidence:
        place = next((at for at, sentence in enumerate(sentences) if sentence == piece), -1)
        context = piece
        while place > 0 and _PRONOUN.search(" ".join(sentences[place].split()[:4])):
            place -= 1
            context = f"{sentences[place]} {context}"
        yield context


def _missing(asked: Sequence[str], context: str, text: str) -> str:
    """Return a word of the subject that a context lacks and the passage has elsewhere."""
    there, anywhere = fold(context).split(), fold(text).split()
    for word in asked:
        if not any(are_alike(word, other) for other in there) and any(are_alike(word, other) for other in anywhere):
            return word
    return ""


def _of_one_time(question: str, asked: Sequence[str], sentences: Sequence[str], answer: str) -> str:
    """Return why a figure holds for one year only, if the sentence has several years."""
    own = next(iter(read_amounts(answer)), None)
    if own is None or _TIME_ASKED.search(question) or not re.match(r"\s*how (?:much|many)\b", question, re.IGNORECASE):
        return ""
    about = [sentence for sentence in sentences if not _missing(asked, sentence, " ".join(asked))]
    years = {year for sentence in about for year in _YEAR.findall(sentence)}
    values = {
        amount.value
        for sentence in about
        for amount, _ in read_amounts(sentence)
        if amount.unit.kind == own[0].unit.kind and not _YEAR.fullmatch(sentence[amount.start : amount.end].strip())
    }
    values -= {int(year) for year in years}
    if len(years) > 1 and len(values) > 1:
        return "the passage has several figures for it, of different years, and the question names none"
    return ""
