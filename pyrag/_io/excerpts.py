"""Excerpts of foreign replies in messages: shortened to one line, without anything that looks like a key.

A message may quote a server, a library or foreign code, for the person who runs pyrag: ``replied HTTP 400 (no such
model)``. The service's clients must not see it. So the service marks excerpts: ``replied HTTP 400 (‹no such model›)``.
It removes marked words from everything that it sends, and writes them only to its log.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

from pyrag._io.redaction import STRUCK, without_secrets

OPEN, CLOSE = "‹", "›"
_marking: ContextVar[bool] = ContextVar("pyrag_marks_excerpts", default=False)
_ENDS = str.maketrans({OPEN: "<", CLOSE: ">"})
_CUT_OFF = re.compile(rf"\A[^{OPEN}{CLOSE}]*{CLOSE}|{OPEN}[^{CLOSE}]*(?:{CLOSE}|\Z)")  # a mark may be lost to a limit

_NAMED = re.compile(
    r"""(?ix) (?<![a-z])
    (?: (?:api|access|secret|private|auth|session|account)?[ _-]?key | token | secret | pass(?:word|wd|phrase) | pwd
      | credentials? | authorization | cookie | signature | session ) (?![a-z])
    ["'`]? (?: [ ]+ (?:is|was|provided|given|used|value|supplied|received|sent|header) ){0,3}
    (?: \s* [:=] \s* | [ ]+ (?= \S{6} ) (?= \S* \d ) )
    (?: (?:bearer|basic|token|digest) \s+ )? ["'`]? (?P<value> [^\s"'`,;<>&]{4,} )"""
)
_SCHEME = re.compile(r"(?i)(?<![a-z])(?:bearer|basic|digest)\s+(?P<value>[\w.~+/=*-]{6,})")
_WORD = re.compile(r"[\w.~+/=*%-]{8,}")
_PREFIXED = re.compile(
    r"(?:sk|pk|rk|hf|gh[opusr]|github_pat|glpat|xox[a-z]|xapp|AKIA|ASIA|AIza|ya29|eyJ|gsk|xai|pplx|nvapi|npm|pypi|dop|SG"
    r"|whsec|AC)"
    r"[-_.*]?[\w.~+/=*-]{8,}"
)
_PART = re.compile(r"[A-Za-z0-9]+")
_BASE64 = re.compile(r"[\w+/=]{30,}")
_PLAIN = re.compile(r"\d{1,6}|true|false|null|none", re.IGNORECASE)
_MIN_PART = 16  # characters of a random part of a key


def excerpt(text: object, limit: int) -> str:
    """Return another program's text on one line, shortened and without keys, for a message; see `mark_excerpts`.

    Args:
        text: The text.
        limit: Maximum number of characters before an ellipsis.
    """
    words = " ".join(without_keys(without_secrets(str(text)[: 16 * limit + 256])).split())
    words = words if len(words) <= limit else words[:limit] + STRUCK
    return f"{OPEN}{words.translate(_ENDS)}{CLOSE}" if words and _marking.get() else words


def mark_excerpts() -> None:
    """Mark the excerpts of messages that are created in this context, and in tasks that begin in it."""
    _marking.set(True)


def without_excerpts(text: str) -> str:
    """Return a message without the words between marks."""
    return _CUT_OFF.sub(STRUCK, text) if OPEN in text or CLOSE in text else text


def has_excerpt(text: str) -> bool:
    """Return True if a message quotes foreign words."""
    return OPEN in text or CLOSE in text


def without_keys(text: str) -> str:
    """Return a text without anything that looks like a key, a token or a password."""
    text = _NAMED.sub(_value_struck, _SCHEME.sub(_value_struck, text))
    return _WORD.sub(_word_struck, text)


def _value_struck(match: re.Match[str]) -> str:
    value = match["value"]
    return match[0] if _PLAIN.fullmatch(value.rstrip(".)]}")) else match[0][: -len(value)] + STRUCK


def _word_struck(match: re.Match[str]) -> str:
    return STRUCK if _is_key_like(match[0]) else match[0]


def _is_key_like(word: str) -> bool:
    if _PREFIXED.fullmatch(word) and _has_mixture(word):
        return True
    if _BASE64.fullmatch(word) and _changes(word) >= 0.3 * len(word):
        return True
    return any(map(_is_random, _PART.findall(word)))


def _has_mixture(word: str) -> bool:
    return any(map(str.isdigit, word)) or not (word.islower() or word.isupper())


def _is_random(part: str) -> bool:
    if len(part) < _MIN_PART:
        return False
    digits = sum(map(str.isdigit, part))
    return 2 <= digits <= len(part) - 2 or _changes(part) >= 0.4 * len(part)


def _changes(word: str) -> int:
    """Return how often a word changes between digits, upper and lower case. Random text changes often."""
    kinds = [
        "d" if character.isdigit() else "u" if character.isupper() else "l" for character in word if character.isalnum()
    ]
    return sum(map(str.__ne__, kinds, kinds[1:]))
