"""Excerpts of cited passages: the sentence that supports an answer."""

from __future__ import annotations

import re

from pyrag.trace.model import Citation, Trace, shorten
from pyrag.trace.sentences import split_sentences, tidy

_WIDTH = 160  # characters
_WORD = re.compile(r"\w{3,}")


def evidence_of(citation: Citation, trace: Trace) -> str:
    """Return the cited passage's sentence that holds the answer, or the sentence closest to the step's query.

    Args:
        citation: Citation of the trace.
        trace: Trace with the passage and the step that cites it.
    """
    step = next((step for step in trace.steps if step.id == citation.step), None)
    answers = [step.answer] if step and step.answer else []
    texts = [answer.text for answer in (*answers, trace.answer) if answer.known and len(answer.text) > 1]
    return excerpt(trace.passages[citation.passage].text, texts, step.query if step else trace.question)


def excerpt(text: str, answers: list[str], query: str) -> str:
    """Return the sentence of a text with most of the answers, with its beginning cut off if they would not be visible.

    Args:
        text: Text of the passage.
        answers: Answers to look for, as whole words.
        query: Query of the step. If no sentence holds an answer, the sentence that shares most words with it is chosen.
    """
    clean = tidy(text)
    sentences = [clean[start:stop].strip() for start, stop in split_sentences(clean)]
    places = [[place for answer in answers if (place := _place(sentence, answer))] for sentence in sentences]
    best = max(range(len(sentences)), key=lambda index: len(set(places[index])), default=0)
    if places and places[best]:
        return _window(sentences[best], *min(places[best]))
    words = _words(" ".join([query, *answers]))
    return shorten(max(sentences, key=lambda sentence: len(_words(sentence) & words), default=""), _WIDTH)


def _place(sentence: str, answer: str) -> tuple[int, int] | None:
    match = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", sentence, re.IGNORECASE)
    return match.span() if match else None


def _window(sentence: str, start: int, stop: int) -> str:
    """Return where to start a sentence: at its start, or shortly before the answer if the answer would be cut off."""
    if len(sentence) <= _WIDTH or stop < _WIDTH:
        return shorten(sentence, _WIDTH)
    first = sentence.find(" ", max(start - _WIDTH // 3, 0), start) + 1
    return f"…{shorten(sentence[first or start :], _WIDTH - 1)}"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
