"""Citations in a model's text: finding them, and removing them from an answer.

"Doc [2]", "(Documents 1 and 3)" and "According to Doc 2, …" are citations because of their word. A bare "[1]",
"【1†source】", "<cite>1</cite>" or "¹" is a citation if the document exists. A bare "Doc 2" is only removed at the end
of a text, since it may be a title. A list of numbers is read in one pass, whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_DOC = r"(?:\bdoc(?:ument)?s?|文档|文件|文書|dokumente?n?|documento?s?)[.#:_]?\s{0,3}#?"
_OTHER = (
    r"(?:\b(?:passages?|sources?|ref(?:erence)?s?|citations?|cite|texts?|snippets?|paragraphs?|excerpts?)|来源|资料|段落)"
    r"[.#:_]?\s{0,3}#?"
)
_NUMBER = r"(?:\[\s{0,2}\d{1,4}\s{0,2}\]|\d{1,4}(?!\d))"
_WORDED = re.compile(rf"(?:(?P<doc>{_DOC})|(?P<other>{_OTHER}))(?P<number>{_NUMBER})", re.IGNORECASE)
_FURTHER = re.compile(
    rf"\s{{0,3}}(?:,|;|&|and|und|et|y|、|和)?\s{{0,3}}(?:(?:{_DOC}|{_OTHER})?{_NUMBER})", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")

_JOINED = r"(?:\s{0,2}(?:,|;|-|–|&|and|、)\s{0,2}\d{1,4}){0,20}"
_BARE = re.compile(
    rf"[\[［【⟦]\s{{0,2}}(?:\^|\#|(?:citation|cite|ref|source|src|passage|doc|id|d|s|p)[ _:.-]{{0,2}})?"
    rf"\d{{1,4}}{_JOINED}(?:[:†*][^\]】\n]{{0,40}})?\s{{0,2}}[\]］】⟧]"
    r"|<(?P<tag>cite|sup|ref|doc)\b[^<>]{0,40}>\s?\[?\d{1,4}\]?\s?</(?P=tag)>"
    r"|\^\[\d{1,3}\]\^?|(?<=[^\W\d])\^\d{1,2}\^",
    re.IGNORECASE,
)
_RAISED = re.compile(r"(?P<word>[^\W\d_]{3,20}|[.)”\"'])(?P<digits>[¹²³⁰⁴-⁹]{1,3})")
_RAISED_DIGITS = str.maketrans("¹²³⁰⁴⁵⁶⁷⁸⁹", "1230456789")
_UNITS = frozenset(("feet", "foot", "miles", "mile", "metres", "meters", "metre", "meter", "yards", "inches"))

_OPENED = re.compile(
    r"[(\[【（［]\s{0,2}"
    r"(?:(?:see|from|per|cf\.?|according to|based on|as stated in|sources?|ref|citations?)\s?:?\s)?\Z",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"(?:[:：,|]\s?[^()\[\]【】（）\n]{0,120})?\s{0,2}[)\]】）］]")
_LED = re.compile(
    r"\A\W{0,3}(?:according to|based on|as (?:stated|mentioned|noted|said) in|from|per|see|in|根据|laut|selon|según)"
    r" ?(?:the )?\Z",
    re.IGNORECASE,
)
_LED_ON = re.compile(r"\s{0,2}[,:，：]\s*")
_BEFORE_END = re.compile(
    r"(?<=\S)[ ,;.:—–-]{1,3}(?:(?:see|according to|as (?:stated|mentioned|noted|said) in|as per|per|from|cf\."
    r"|based on|sources?:?)"
    r"\s(?:the )?)?\Z",
    re.IGNORECASE,
)
_LED_BY_NOTHING = re.compile(r"\A(?:according to|based on|as (?:stated|noted) in|per|from|in) ?[,:]\s*", re.IGNORECASE)
_END = re.compile(r"[\s.]*\Z")
_REACH = 40  # characters before a citation that are examined


@dataclass(frozen=True, slots=True)
class _Cited:
    """Place where a text cites documents with a word such as "Doc"; `marked` is True if the numbers are in brackets."""

    start: int
    end: int
    numbers: tuple[int, ...]
    marked: bool
    doc: bool


def find_citations(text: str, documents: int) -> tuple[int, ...]:
    """Return the positions (from 0) of the documents that a text cites, in order.

    Args:
        text: Any text.
        documents: Number of documents; higher numbers are ignored.
    """
    for numbers in (_worded_numbers(text), _bare_numbers(text)):
        positions = tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= documents))
        if positions:
            return positions
    return ()


@lru_cache(maxsize=32)  # an answer is stripped again after it was tidied, mostly unchanged
def strip_citations(text: str, documents: int = 0) -> str:
    """Return an answer without its citations.

    Args:
        text: The answer.
        documents: Number of documents; a bare number in brackets is a citation if it is at most this.
    """
    text = text.strip()
    spans = [span for cited in _worded(text) if (span := _span_of(text, cited)) is not None]
    stripped = _without(text, spans)
    if documents:
        stripped = _without_raised(_BARE.sub(lambda match: _unless_cited(match[0], documents), stripped), documents)
        if stripped != text:
            stripped = _LED_BY_NOTHING.sub("", re.sub(r"(?<=\S) {1,9}(?=[.,;]|\Z)", "", stripped))
    return stripped.lstrip(" ,;:").rstrip()


def _worded(text: str) -> Iterator[_Cited]:
    word = _WORDED.search(text)
    while word is not None:
        end, further = word.end(), _FURTHER.match(text, word.end())
        while further is not None:
            end = further.end()
            further = _FURTHER.match(text, end)
        listed = text[word.start("number") : end]
        numbers = tuple(map(int, _DIGITS.findall(listed)))
        yield _Cited(word.start(), end, numbers, word["number"].startswith("["), word["doc"] is not None)
        word = _WORDED.search(text, end)


def _worded_numbers(text: str) -> list[int]:
    return [number for cited in _worded(text) for number in cited.numbers]


def _bare_numbers(text: str) -> list[int]:
    numbers = [number for match in _BARE.finditer(text) for number in _numbers_of(match[0])]
    return numbers + [int(match["digits"].translate(_RAISED_DIGITS)) for match in _RAISED.finditer(text)]


def _numbers_of(bare: str) -> list[int]:
    """Return the numbers of "[1, 3-5]"; text after a dagger or colon is a place within the document."""
    listed = re.split(r"[†:*]", re.sub(r"<[^<>]*>", "", bare))
    body = next((part for part in listed if _DIGITS.search(part)), "")
    numbers: list[int] = []
    for first, last in re.findall(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?", body):
        numbers += range(int(first), min(int(last or first), int(first) + 50) + 1)
    return numbers


def _unless_cited(bare: str, documents: int) -> str:
    return "" if all(1 <= number <= documents for number in _numbers_of(bare)) else bare


def _without_raised(text: str, documents: int) -> str:
    def replaced(raised: re.Match[str]) -> str:
        exists = 1 <= int(raised["digits"].translate(_RAISED_DIGITS)) <= documents
        return raised["word"] if exists and raised["word"].casefold() not in _UNITS else raised[0]

    return _RAISED.sub(replaced, text)


def _span_of(text: str, cited: _Cited) -> tuple[int, int] | None:
    """Return the part of an answer to remove with a citation; None if the citation stays."""
    before = text[max(0, cited.start - _REACH) : cited.start]
    opened, closed = _OPENED.search(before), _CLOSED.match(text, cited.end)
    if opened and closed:
        start = cited.start - len(before) + opened.start()
        return start - (text[start - 1 : start] == " "), closed.end()
    led = _LED.match(before) if cited.start < _REACH else None
    if led and (on := _LED_ON.match(text, cited.end)):
        return 0, on.end()
    if cited.marked:
        return cited.start - before.endswith(" "), cited.end
    behind = _BEFORE_END.search(before)
    if cited.doc and behind and _END.match(text, cited.end):
        return cited.start - len(behind[0]), len(text)
    return None


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = max(end, at)
    return "".join([*parts, text[at:]])
