"""Redaction of secrets: keys, passwords, and the parts of addresses before an @ or after a ?.

`without_secrets` strips addresses in a text. A `Redactor` knows the secrets of a service and removes them from its
replies, in the forms in which servers repeat them: unchanged, URL-encoded, in base64, escaped, or in part. There are
two levels: `message` for errors, where removing too much does no harm, and `content` for replies and passages, where
only texts that look like a secret are removed. Secrets that a server has changed in other ways are not found.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from urllib.parse import quote, quote_plus, unquote, unquote_plus

STRUCK = "…"
_WORD = re.compile(r"\S+")
_SCHEME = re.compile(r"(?<!\w)\w\w+:/")
_LOGIN = re.compile(r"((?<!\w)\w\w+://?)[^/?#\s]*@")
_ODD_LOGIN = re.compile(
    r"((?<!\w)\w\w+://?)(?![^/?#\s:]*:\d+(?:[/?#\s]|$))[^/?#\s:]*:[^@\s]*@"
)  # a password with a slash or question mark
_QUERY_START = re.compile(r"[?#]")
_ENDS = ")'\":;,."  # of a sentence around an address
_PLAIN_VERSION = re.compile(r"v?[\d.\-]+")
_MIN_ANYWHERE = 3  # characters; shorter secrets are removed only as whole words
_MIN_RUN, _MAX_RUN = 4, 8  # characters of a part that is removed from a message
_CONTENT_RUN = 12  # characters of a part that is removed from a reply
_STRIDE = _CONTENT_RUN // 2


@lru_cache(maxsize=64)  # each question has the same texts
def without_secrets(text: str) -> str:
    """Remove users, passwords and queries from the addresses in a text, in linear time."""
    return _WORD.sub(lambda word: _bare_address(word[0]), text) if ":/" in text else text


def _bare_address(word: str) -> str:
    """Remove users, passwords and queries from the addresses in a word."""
    if ":/" not in word:
        return word
    for login in (_LOGIN, _ODD_LOGIN):
        head, at, rest = word.rpartition("@")  # a search behind the last @ would fail at each scheme, at full length
        word = login.sub(r"\1", head + at) + rest
    scheme = _SCHEME.search(word)
    query = scheme and _QUERY_START.search(word, scheme.end())
    if not query:
        return word
    ending = word[len(word.rstrip(_ENDS)) :]
    return word[: query.start()] + (ending if query.start() < len(word) - len(ending) else word[query.end() :])


def secrets_of_query(query: str) -> Iterator[str]:
    """Yield the values of a URL's query, raw and decoded. Names without a value may be secrets, too."""
    for item in re.split("[&;]", query):
        name, equals, value = item.partition("=")
        secret = value if equals else name
        yield from {secret, unquote(secret), unquote_plus(secret)}


def looks_secret(value: str) -> bool:
    """Return whether a value is so unusual that any text containing it must have copied it."""
    if len(value) < 6 or _PLAIN_VERSION.fullmatch(value) or " " in value:
        return False
    has_digit, has_letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    return (has_digit and has_letter) or len(value) >= 16


class Redactor:
    """Redactor that removes a service's secrets from its replies."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(dict.fromkeys(secret for secret in secrets if secret))
        self._strong = tuple(secret for secret in self._secrets if looks_secret(secret))
        self._needles = tuple(dict.fromkeys(_needles(self._strong)))
        self._bytes = tuple(needle.encode() for needle in self._needles)

    def message(self, text: str) -> str:
        """Remove secrets and parts of secrets from an error message."""
        if not self._secrets or not text:
            return text
        text = self._short.sub(STRUCK, text) if self._short else text
        for form in self._forms:
            text = text.replace(form, STRUCK)
        for run, grams in self._grams:
            text = _without_runs(text, run, grams)
        return text

    def content(self, text: str) -> str:
        """Remove texts that look like secrets from a reply."""
        if self._needles and any(needle in text for needle in self._needles):
            return self._struck(text)
        return text

    def body(self, content: bytes) -> bytes:
        """Remove secrets from encoded JSON, in which characters may be escaped."""
        if not self._needles:
            return content
        if b"\\u00" in content or b"\\/" in content:
            content = _ESCAPED_SLASH.sub(rb"\1/", _ESCAPED_LETTER.sub(_unescaped, content))
        if any(needle in content for needle in self._bytes):
            return self._struck(content.decode("utf-8", "replace")).encode()
        return content

    def pieces(self, show: Callable[[str], None]) -> Pieces:
        """Return a callable that passes on a streamed reply's pieces without secrets, even if these span pieces."""
        return Pieces(self, show, guarded=bool(self._strong))

    def unfinished(self, text: str) -> int:
        """Return where the end of a text may begin a secret; the text's length if it cannot."""
        match = self._beginnings.search(text, max(0, len(text) - self._longest))
        return match.start() if match else len(text)

    def _struck(self, text: str) -> str:
        for form in _all_forms(self._strong):
            text = text.replace(form, STRUCK)
        for secret in self._strong:
            if len(secret) >= _CONTENT_RUN:
                text = _without_runs(text, _CONTENT_RUN, _grams(secret, _CONTENT_RUN))
        return text

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        return tuple(form for form in _all_forms(self._secrets) if len(form) >= _MIN_ANYWHERE)

    @cached_property
    def _short(self) -> re.Pattern[str] | None:
        words = [re.escape(secret) for secret in self._secrets if len(secret) < _MIN_ANYWHERE]
        return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)") if words else None

    @cached_property
    def _grams(self) -> list[tuple[int, frozenset[str]]]:
        """Parts of secrets to remove from messages, with their lengths."""
        grams_by_length = []
        for secret in _all_forms(self._secrets):
            run = min(max(-(-len(secret) // 2), _MIN_RUN), _MAX_RUN)
            if len(secret) > run:
                grams_by_length.append((run, _grams(secret, run)))
        return grams_by_length

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._strong))

    @cached_property
    def _beginnings(self) -> re.Pattern[str]:
        """Pattern of the start of a secret at the end of a text."""
        patterns = []
        for secret in self._strong:
            rest = ""
            for letter in reversed(secret[1:-1]):
                rest = f"(?:{re.escape(letter)}{rest})?"
            patterns.append(re.escape(secret[0]) + rest)
        return re.compile(rf"(?:{'|'.join(patterns)})\Z")


class Pieces:
    """Filter for the pieces of a reply. It holds back text that may be the start of a secret until this is decided."""

    def __init__(self, redactor: Redactor, show: Callable[[str], None], *, guarded: bool) -> None:
        self._redactor = redactor
        self._guarded = guarded
        self._show = show
        self._held = ""

    def __call__(self, text: str) -> None:
        if not self._guarded:
            self._show(text)
            return
        text = self._held + text
        cut = self._redactor.unfinished(text)
        self._held = text[cut:]
        if cut:
            self._show(self._redactor.content(text[:cut]))

    def end(self) -> None:
        """Pass on the text that was held back, which turned out not to be a secret."""
        if self._held:
            self._show(self._redactor.content(self._held))
            self._held = ""


_ESCAPED_LETTER = re.compile(rb"(?<!\\)((?:\\\\)*)\\u00([2-7][0-9a-fA-F])")
_ESCAPED_SLASH = re.compile(rb"(?<!\\)((?:\\\\)*)\\/")


def _unescaped(match: re.Match[bytes]) -> bytes:
    letter = bytes([int(match[2], 16)])
    return match[0] if letter in b'"\\\x7f' else match[1] + letter


def _needles(secrets: Iterable[str]) -> Iterator[str]:
    """Yield pieces at least one of which occurs in any text with a secret or a long part of a secret."""
    yield from _all_forms(secrets)
    for secret in secrets:
        if len(secret) >= 2 * _CONTENT_RUN:
            yield from (secret[start : start + _STRIDE] for start in range(0, len(secret) - _STRIDE + 1, _STRIDE))


def _all_forms(secrets: Iterable[str]) -> Iterator[str]:
    for secret in secrets:
        yield from _forms_of(secret)


@lru_cache(maxsize=256)
def _forms_of(secret: str) -> tuple[str, ...]:
    """Return the forms in which servers repeat a secret, longest first."""
    encoded = {base64.b64encode(secret.encode()).decode(), base64.urlsafe_b64encode(secret.encode()).decode()}
    url = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    url |= {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in url}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], _html(secret)}
    forms = {secret, *url, *escaped, *encoded, *(form.rstrip("=") for form in encoded)}
    return tuple(sorted((form for form in forms if form), key=len, reverse=True))


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _grams(secret: str, run: int) -> frozenset[str]:
    return frozenset(secret[start : start + run] for start in range(len(secret) - run + 1))


def _without_runs(text: str, run: int, grams: frozenset[str]) -> str:
    """Remove the parts of a text that consist of these grams."""
    pieces: list[str] = []
    start = 0  # of the next piece to keep
    for place in range(len(text) - run + 1):
        if text[place : place + run] in grams:
            if place > start or not pieces:
                pieces += [text[start:place], STRUCK]
            start = place + run
    return "".join((*pieces, text[start:])) if pieces else text
