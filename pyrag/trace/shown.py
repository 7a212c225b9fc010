"""Answers, citations, passages and traces as texts for a REPL and a notebook, from their plain values."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_MAX_TEXT = 80  # characters on a line
_MAX_CARD = 600  # in a notebook


def clipped(text: str, most: int = _MAX_TEXT) -> str:
    """Return a text on one line, cut to a number of characters.

    Args:
        text: Any text.
        most: Maximum number of characters.
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def passage_text(title: str, text: str, place: str) -> str:
    """Return a passage with its title above and its place below it.

    Args:
        title: Its title; may be empty.
        text: Its text.
        place: Its place in a source; may be empty.
    """
    return "\n".join(filter(None, (title, text, f"({place})" if place else "")))


def passage_html(title: str, text: str, place: str) -> str:
    """Return a passage as a piece of HTML. Args: those of `passage_text`, of which any may be hostile."""
    shown = text if len(text) <= _MAX_CARD else f"{text[: _MAX_CARD - 1]}…"
    below = f"<br><small>{escape(place)}</small>" if place else ""
    return f"<div><b>{escape(title)}</b><br>{escape(shown)}{below}</div>"


def answer_html(text: str, known: bool, confidence: float | None) -> str:
    """Return an answer as a piece of HTML.

    Args:
        text: Its text, which may be hostile.
        known: False for an unknown one, which is shown in italics.
        confidence: In [0, 1], if there is one.
    """
    sure = "" if confidence is None or not known else f" <small>confidence {confidence:.2f}</small>"
    mark = "b" if known else "i"
    return f"<div><{mark}>{escape(text)}</{mark}>{sure}</div>"


def trace_line(question: str, answer: str, steps: int, citations: int, seconds: float, error: str) -> str:
    """Return a trace on one line.

    Args:
        question: The question.
        answer: Text of the answer.
        steps: Number of steps.
        citations: Number of citations.
        seconds: Time that it took.
        error: Why it failed; empty if it did not.
    """
    end = f"failed: {clipped(error)}" if error else repr(clipped(answer))
    counts = f"{steps} {'step' if steps == 1 else 'steps'}, {citations} {'citation' if citations == 1 else 'citations'}"
    return f"<Trace {clipped(question)!r} → {end} ({counts}, {seconds:.2f} s)>"


def trace_text(question: str, answer: str, error: str, sources: Sequence[tuple[int, str, str]]) -> str:
    """Return a trace as question, answer and cited sources.

    Args:
        question: The question.
        answer: Text of the answer.
        error: Why it failed; empty if it did not.
        sources: Number, title and text of each cited passage.
    """
    lines = [question, f"→ {answer}", *([f"✗ {error}"] if error else [])]
    return "\n".join([*lines, *(f"[{number}] {title}: {clipped(text)}" for number, title, text in sources)])
