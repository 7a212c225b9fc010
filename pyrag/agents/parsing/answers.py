"""Answer in a model's reply, with its form and its citations.

`parse_answer` is strict and reports what the model did wrong. `salvage_answer` makes the best of a reply if the model
is not asked again. `read_answer` combines both, for callers that ask only once. The answer's place is found by
`answer_places`. `is_unknown` looks at the whole answer and never at a single word: "Unknown Pleasures" is an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.answer_places import extracted, is_form, without_label
from pyrag.agents.parsing.citations import find_citations, strip_citations
from pyrag.agents.parsing.spans import (
    is_evasive,
    is_wordy,
    repeats_question,
    shortened,
    verdict_of,
    without_preposition,
)
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.errors import BadOutputError
from pyrag.trace.model import UNKNOWN
from pyrag_helpers.unknown import is_unknown

__all__ = [
    "MAX_ANSWER",
    "ParsedAnswer",
    "find_citations",
    "is_evasive",
    "is_unknown",
    "parse_answer",
    "read_answer",
    "salvage_answer",
    "strip_citations",
]

MAX_ANSWER = 2000
_SHORT = 200  # maximum characters of an answer without tags

_FORM = "it repeats the form and contains no answer"
_PAYLOAD = r"(?i)<\s?(?:final[ _-]?)?answer\s?>"
_MARKUP = re.compile(r"</?[A-Za-z_][\w:-]{0,60}>|```(?:[a-z]{1,20}(?=\n))?|<\|")
_FENCED = re.compile(r"\A```(?:[\w+-]{0,20}\n)?([^`]{1,2000}?)\n?```\Z")
_ELEMENT = re.compile(r"</?[a-z][\w-]{0,20}(?:\s[^<>]{0,60})?/?>", re.IGNORECASE)
_CITED = re.compile(r"<(cite|sup|ref)>\s?\[?\d{1,3}\]?\s?</\1>", re.IGNORECASE)
_CONFIDENCE = re.compile(r"(?<=\S)\s{0,2}[(\[]confidence[^()\[\]]{0,30}[)\]]\.?\Z", re.IGNORECASE)
_CLOSING_QUOTES = tuple("\"'”’»")
_MIN_REMARK_WORDS = 6
_MIN_SENTENCE_WORDS = 3
_ANY_DOCUMENT = 1_000  # highest document number that counts as a citation
_MAX_LAST_WORDS = 10  # maximum words of a last line that may be the answer
_CONCLUDES = re.compile(
    r"\W*(?:so|thus|hence|therefore|in conclusion|overall|finally|i|it|the answer)\b", re.IGNORECASE
)
_MAX_NAME_WORDS = 4  # maximum words of a name, which loses its full stop
_STOPPED = re.compile(
    r"([^.,;:!?]*\b(?!(?:Inc|Ltd|Corp|Bros|Jun|Sen|Esq|etc|vol)\.)(?:[^\W\d_]{3,}|\d+))\.", re.IGNORECASE
)
_EXPLAINED = re.compile(
    r"(?:\n[^\S\n]{0,8}|(?<=[.)\]])\s{1,4})[*_(]{0,3}(?:explanation|reason(?:ing)?|because|note|sources?|evidence|justification"
    r"|rationale"
    r"|citations?|references?|confidence|supporting \w+|解释|理由|说明)[*_]{0,2}\s{0,2}[:：]",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?<=\S)(?:\s{0,2}[-–—,;:(]\s{0,2}|\s)(?:because|since|given that|per|according to"
    r"|as (?:is )?(?:stated|mentioned|noted|said|given|described|shown|per))\b"
    r"|\n\s{0,9}\n",
    re.IGNORECASE,
)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))
_HOW_MANY = re.compile(r"\bhow (?:many|much|often)\b|\b(?:number|any|none|which of)\b", re.IGNORECASE)
_AROUND = tuple(
    tuple(pair.split())
    for pair in ("** **", "* *", "__ __", "` `", "$ $", '" "', "“ ”", "' '", "‘ ’", "« »", "「 」", "『 』", "„ “")
)
_OPENINGS = frozenset(opening[0] for opening, _ in _AROUND)
_BULLET = re.compile(r"\A\s{0,8}(?:[-*•]|\d{1,2}[.)])\s{1,4}(?=\S)")


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """Answer parsed from a reply. `citations` count from 0; `note` describes changes to the text, if any."""

    text: str
    known: bool
    citations: tuple[int, ...] = ()
    rationale: str = ""
    note: str = ""


def parse_answer(text: str, documents: int = 0, query: str = "") -> ParsedAnswer:
    """Parse a reply in the form of the answer prompts, or in another form that marks the answer just as clearly.

    Args:
        text: The reply.
        documents: Number of documents that it may cite.
        query: Query that was asked. A yes or no to a question that asks for something else, and a sentence instead
            of a span, are malformed.

    Raises:
        BadOutputError: The reply is malformed; the message is for the model.
    """
    thinking, rest = split_thinking(text, _PAYLOAD)
    answer = UNKNOWN if _refuses(rest) else extracted(rest, query)
    if answer is not None and is_form(answer):
        raise BadOutputError(_FORM)
    parsed = _made(_untagged(rest, documents) if answer is None else answer, thinking, rest, documents, query)
    if parsed.known:
        checked_span(parsed.text, query)
    return parsed


def checked_span(answer: str, query: str) -> None:
    """Check that an answer has the form that the query asks for.

    Args:
        answer: The answer.
        query: Query that was asked.

    Raises:
        BadOutputError: The answer has another form; the message is for the model.
    """
    if is_form(answer):
        raise BadOutputError(_FORM)
    if repeats_question(query, answer):
        raise BadOutputError("it repeats the question and contains no answer")
    if is_evasive(query, answer):
        raise BadOutputError("the question does not ask whether something is so, but the answer is yes or no")
    if query and is_wordy(query, answer):
        raise BadOutputError("the answer is a sentence: write only the name, date, number or few words asked for")


def cleaned(answer: str, documents: int = 0, query: str = "") -> str:
    """Return the text of an answer field without labels, emphasis, citations and explanations.

    Args:
        answer: Text of the field.
        documents: Number of documents that it may cite.
        query: Query that was asked.
    """
    return _made(answer, "", "", documents, query).text


def salvage_answer(text: str, documents: int = 0, query: str = "") -> ParsedAnswer | None:
    """Return the best reading of a malformed reply, shortened; None if it has no answer.

    Args:
        text: The reply.
        documents: Number of documents that it may cite.
        query: Query that was asked.
    """
    thinking, rest = split_thinking(text, _PAYLOAD)
    answer = UNKNOWN if _refuses(rest) else extracted(rest, query)
    if answer is None:
        answer = _last_words(rest) or (extracted(thinking) if thinking and not rest else None)
    if answer is None or is_form(answer):
        return None
    parsed = _made(answer, thinking, rest, documents, query)
    short = shortened(query, parsed.text) if parsed.known else parsed.text
    return parsed if short == parsed.text else replace(parsed, text=short, note="the answer was a sentence")


def read_answer(text: str, documents: int = 0, query: str = "") -> ParsedAnswer:
    """Return the best answer in a reply, without asking the model again; unknown if the reply has no answer.

    Args:
        text: The reply.
        documents: Number of documents that it may cite.
        query: Query that was asked.
    """
    try:
        return parse_answer(text, documents, query)
    except BadOutputError as error:
        problem = str(error)
    return salvage_answer(text, documents, query) or ParsedAnswer(UNKNOWN, False, note=f"no answer: {problem}")


def _made(answer: str, thinking: str, rest: str, documents: int, query: str) -> ParsedAnswer:
    citations = find_citations(answer, documents) or find_citations(f"{thinking}\n{rest}", documents)
    plain = _tidy(strip_citations(answer[:MAX_ANSWER], documents))
    answer, note = UNKNOWN if is_unknown(plain) else _tidy(_unexplained(_unwrapped(answer, query), documents)), ""
    if len(answer) > MAX_ANSWER:
        note = f"the answer was cut from {len(answer)} to {MAX_ANSWER} characters"
        answer = answer[:MAX_ANSWER]
    answer = _tidy(strip_citations(answer, documents))
    stopped = _STOPPED.fullmatch(answer) if len(answer.split()) <= _MAX_NAME_WORDS else None
    answer = stopped[1] if stopped else answer
    if is_unknown(answer) or _names_none(answer, query):
        return ParsedAnswer(UNKNOWN, False, (), thinking, note)
    answer = without_preposition(query, answer)
    return ParsedAnswer(verdict_of(query, answer) or answer, True, citations, thinking, note)


def _names_none(answer: str, query: str) -> bool:
    """Return True if "None" is the answer to a query for a name, date or place; for "how many" it is a number."""
    return answer.casefold() == "none" and bool(query) and not _HOW_MANY.search(query)


def _unexplained(answer: str, documents: int) -> str:
    """Return an answer without a trailing reason that cites documents."""
    reason = _REASON.search(answer)
    if reason is None or not find_citations(answer[reason.end() :], documents):
        return answer
    return answer[: reason.start()]


def _refuses(rest: str) -> bool:
    """Return True if a reply without tags is a refusal."""
    text = rest.strip()
    return (
        bool(text)
        and not any(char in text for char in "<{")
        and is_unknown(text.split("\n", 1)[0])
        and is_unknown(text)
    )


def _untagged(text: str, documents: int) -> str:
    """Return a short clean reply, which is an answer although it has no tags."""
    text = text.strip()
    text = strip_citations(text, documents) if len(text) <= 2 * _SHORT else text
    if not text:
        raise BadOutputError("it is empty")
    if is_form(without_label(text)):
        raise BadOutputError(_FORM)
    if len(text) > _SHORT or "\n" in text or text.startswith(("{", '["')) or _MARKUP.search(text):
        raise BadOutputError("it has no <answer>…</answer>")
    return text


def _last_words(rest: str) -> str | None:
    """Return a short reply unchanged, or the lines after its sentences; of a longer reply, return a short last line."""
    lines = [line.strip() for line in lines_of(_MARKUP.sub(" ", rest)) if line.strip()]
    whole = " ".join(lines)
    if whole and (is_unknown(whole) or (len(lines) > 1 and _CONCLUDES.match(lines[-1]) and is_unknown(lines[-1]))):
        return UNKNOWN
    if whole.startswith(("{", '["')) or is_form(without_label(whole)):
        return None
    if 0 < len(whole) <= _SHORT:
        return _below_sentences(lines) or whole
    last = lines[-1] if len(lines) > 1 else ""
    return last if 0 < len(last.split()) <= _MAX_LAST_WORDS and not last.endswith((":", "?")) else None


def _below_sentences(lines: list[str]) -> str:
    """Return the short lines below a reply's sentences, joined by commas; empty if the reply looks different."""
    start = next((place for place, line in enumerate(lines) if not _is_sentence(line, lines[:place])), 0)
    below = lines[start:]
    if not start or any(_is_sentence(line, lines[:start]) or line.endswith((":", "?")) for line in below):
        return ""
    return ", ".join(below) if all(len(line.split()) <= _MAX_LAST_WORDS for line in below) else ""


def _is_sentence(line: str, before: list[str]) -> bool:
    """Return True if a line ends or cites like a sentence, and is not a name that an earlier line contains."""
    words = line.split()
    if len(words) <= _MAX_NAME_WORDS and any(line.rstrip(".") in earlier for earlier in before):
        return False
    ended = line.rstrip("\"'”’*_)]").endswith((".", "!")) and len(words) >= _MIN_SENTENCE_WORDS
    return ended or (len(words) > _MAX_NAME_WORDS and bool(find_citations(line, _ANY_DOCUMENT)))


def _unwrapped(answer: str, query: str) -> str:
    """Return an answer without the fences, labels, lists and explanations that models add inside the tags."""
    answer = answer.strip()
    if fenced := _FENCED.match(answer):
        answer = fenced[1]
    answer = answer.strip().removesuffix("```").strip()
    if explained := _EXPLAINED.search(answer):
        answer = answer[: explained.start()] or answer
    answer = _first_paragraph(_ELEMENT.sub("", _CITED.sub("", answer)).strip() or answer)
    answer = _CONFIDENCE.sub("", answer) or answer
    lines = [line for line in lines_of(answer) if line.strip()]
    if lines and all(_BULLET.match(line) for line in lines) and (len(lines) > 1 or not lines[0].strip()[0].isdigit()):
        return ", ".join(_BULLET.sub("", line).strip() for line in lines)
    inner = extracted(answer, query) if len(answer) <= MAX_ANSWER else None
    return inner if inner else answer


def _first_paragraph(answer: str) -> str:
    """Return an answer without the remarks in later paragraphs."""
    first, _, rest = answer.partition("\n\n")
    remark = rest.strip().startswith("(") or len(rest.split()) >= _MIN_REMARK_WORDS
    return first if first.strip() and len(first) <= _SHORT and remark and not _BULLET.match(first) else answer


@lru_cache(maxsize=32)
def _tidy(text: str) -> str:
    """Return a text on one line, without Markdown emphasis or quotes around the whole."""
    text = " ".join(text.translate(_INVISIBLE).split())
    if text[-2:-1] in _CLOSING_QUOTES and text.endswith("."):
        text = text[:-1]
    for opening, closing in _AROUND if text[:1] in _OPENINGS else ():
        if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening):
            inner = text[len(opening) : -len(closing)]
            text = text if opening in inner or closing in inner else inner.strip()
    return text
