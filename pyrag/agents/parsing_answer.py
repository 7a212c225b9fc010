"""What a model's reply means, part three: an answer, whether it is one, and what it cites.

Unknown is decided here, once, by the whole of the answer and never by a word in it: "Unknown Pleasures" is an answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from pyrag.agents.parsing import split_thinking
from pyrag.errors import BadOutputError
from pyrag.trace import UNKNOWN

MAX_ANSWER = 2000
_SHORT = 200  # characters that an answer without tags may have

_ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.DOTALL | re.IGNORECASE)
_PAYLOAD = r"(?i)<answer>"
_TAG = re.compile(r"</?[A-Za-z_][\w:-]*>|```|<\|")
_LEAD_IN = re.compile(r"(?:the\s+)?(?:(?:final|short|best)\s+)?answer\s*(?:is\s*)?[:：]\s*", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")

_DOC = r"doc(?:ument)?s?\.?\s*"
_NEXT = r"\s*(?:,|;|&|and)\s*"
# A further "Doc" belongs to the list alone, and not to these numbers too: two ways to read it are 2^n for n of them.
_NUMBERS = rf"\d{{1,4}}(?:{_NEXT}\[?\d{{1,4}}\]?)*"
_INSIDE = rf"(?:{_DOC})?\d{{1,4}}(?:{_NEXT}(?:{_DOC})?\[?\d{{1,4}}\]?)*"
_BRACKETED = rf"\[\s*{_INSIDE}\s*\](?:(?:{_NEXT}|\s*)\[\s*\d{{1,4}}\s*\])*"
_CITED = rf"{_DOC}(?:{_BRACKETED}|{_NUMBERS})"
_CITATION = re.compile(rf"\b{_CITED}", re.IGNORECASE)
_CITED_LIST = rf"{_CITED}(?:{_NEXT}{_CITED})*"
_SOURCED = r"(?:according to|based on|as stated in|from|per|see)"
_STRIPPED = re.compile(
    rf"\A{_SOURCED} {_CITED_LIST}\s*[,:]\s*"  # According to Doc 2, …
    rf"| ?[(\[【]\s*(?:{_SOURCED} )?{_CITED_LIST}\s*[)\]】]"  # (Doc 2) [Doc 2, Doc 3]
    rf"| ?\b{_DOC}{_BRACKETED}"  # Doc [2]
    rf"|(?<=\S)[ ,;.:—–-]{{1,3}}{_CITED_LIST}[\s.]*\Z",  # …, Doc 2
    re.IGNORECASE,
)

_SENTINELS = frozenset(
    """
    unknown
    the answer is unknown
    answer unknown
    not known
    it is unknown
    cannot answer
    can not answer
    can't answer
    cannot be answered
    cannot be determined
    cannot determine
    cannot be determined from the documents
    unable to answer
    unable to determine
    unanswerable
    undetermined
    not answerable
    i don't know
    i do not know
    don't know
    insufficient information
    insufficient evidence
    insufficient context
    insufficient data
    not enough information
    not enough evidence
    not enough context
    there is not enough information
    no information
    no information available
    no relevant information
    information not found
    information not available
    no answer
    no answer found
    not found
    not available
    not mentioned
    not specified
    not stated
    not provided
    not given
    n/a
    """.strip().split("\n    ")
)
_SOURCES = r"(?:documents?|passages?|texts?|facts?|context|evidence|information|sources?)"
# Talk about the documents instead of an answer. The whole answer must be such a sentence.
_REFUSAL = re.compile(
    rf"(?:sorry, |based on [\w ]{{0,40}}{_SOURCES}, )?(?:"
    rf"(?:the|these|those)(?: \w+)? {_SOURCES}(?: \w+)? (?:do(?:es)? not|don't|doesn't|did not|cannot|lacks?)\b"
    rf"|(?:no|none of the)(?: \w+)? {_SOURCES} (?:mention|contain|provide|state|say|support|answer|is|are)"
    rf"|there is (?:no|not enough|insufficient) (?:\w+ )?{_SOURCES}"
    r"(?=$| (?:to|in|about|that|on|for|regarding|available|given|provided)\b)"
    r"|(?:it|this|the answer|the question) (?:cannot|can not|can't) be (?:answered|determined)\b"
    r"|i (?:cannot|can't|am unable to|could not) (?:answer|determine|find)\b"
    r").*",
    re.DOTALL,
)

_WH_QUESTION = re.compile(
    r"(?:(?:in|on|at|from|to|of|for|by|with|under) )?(?:who|whom|whose|what|which|when|where|how)\b"
    r"(?!.*\byes\b.*\bno\b)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer read from a reply. `citations` count from 0; `note` says what was done to the text, if anything."""

    text: str
    known: bool
    citations: tuple[int, ...] = ()
    rationale: str = ""
    note: str = ""


def parse_answer(text: str, documents: int = 0) -> ParsedAnswer:
    """Reads a reply in the schema of the answer prompts. Raises `BadOutputError` where it has another form."""
    thinking, rest = split_thinking(text, _PAYLOAD)
    found = _tagged(rest)
    return _made(_untagged(rest) if found is None else found, thinking, rest, documents)


def salvage_answer(text: str, documents: int = 0) -> ParsedAnswer | None:
    """What can be made of a reply without tags when asking again did not help; None if it is no short answer."""
    thinking, rest = split_thinking(text, _PAYLOAD)
    lines = [line for line in _TAG.sub(" ", rest).splitlines() if line.strip()]
    led = [line[found.end() :] for line in lines if (found := _LEAD_IN.match(line.strip("*# ")))]
    last = led[-1] if led else " ".join(lines)
    if not last.strip() or len(last) > _SHORT:
        return None
    return _made(_tidy(last), thinking, rest, documents)


def _made(answer: str, thinking: str, rest: str, documents: int) -> ParsedAnswer:
    citations = find_citations(answer, documents) or find_citations(f"{thinking}\n{rest}", documents)
    answer, note = _tidy(answer), ""
    if len(answer) > MAX_ANSWER:
        note = f"the answer was cut from {len(answer)} to {MAX_ANSWER} characters"
        answer = answer[:MAX_ANSWER]
    answer = _tidy(strip_citations(answer))
    if is_unknown(answer):
        return ParsedAnswer(UNKNOWN, False, (), thinking, note)
    return ParsedAnswer(answer, True, citations, thinking, note)


def _tagged(text: str) -> str | None:
    """What stands in the last complete pair of tags, else behind a tag that was never closed."""
    pairs = _ANSWER.findall(text)
    if pairs:
        return str(pairs[-1])
    start = text.lower().rfind("<answer>")
    return None if start < 0 else text[start + len("<answer>") :]


def _untagged(text: str) -> str:
    """A short clean text is an answer all the same."""
    text = _from_json(text.strip())
    if not text:
        raise BadOutputError("it is empty")
    if boxed := _BOXED.findall(text):
        return str(boxed[-1])
    if len(text) > _SHORT or "\n" in text or _TAG.search(text):
        raise BadOutputError("it has no <answer>…</answer>")
    return _LEAD_IN.sub("", text, count=1) if _LEAD_IN.match(text) else text


def _from_json(text: str) -> str:
    """The answer of `{"answer": "…"}`, a form that servers with a JSON mode insist on; other text unchanged."""
    if not text.startswith("{"):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    answer = value.get("answer") if isinstance(value, dict) else None
    return answer.strip() if isinstance(answer, str) else text


def _tidy(text: str) -> str:
    """One line, without Markdown emphasis or quotes around the whole."""
    text = " ".join(text.split())
    for opening, closing in (("**", "**"), ("*", "*"), ("`", "`"), ('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’")):
        if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening):
            inner = text[len(opening) : -len(closing)]
            text = text if opening in inner or closing in inner else inner.strip()
    return text


def is_unknown(answer: str) -> bool:
    """Whether an answer says that there is none. Decided by all of it, after normalisation."""
    plain = " ".join(answer.replace("’", "'").casefold().split()).strip(" .!?…\"'`*()[]<>:;,-–—")
    if not plain or plain in _SENTINELS:
        return True
    head, _, tail = _split_sentence(plain)
    return (head in _SENTINELS and _is_refusal(tail)) or _is_refusal(plain)


def _split_sentence(text: str) -> tuple[str, str, str]:
    found = re.search(r"\s*[.,;:(—–-]\s*", text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])


def _is_refusal(text: str) -> bool:
    return _REFUSAL.fullmatch(text) is not None


def is_evasive(query: str, answer: str) -> bool:
    """Yes or no to a question that asks for something else. Only what follows "Answer the question:" counts."""
    if answer.casefold().strip(" .") not in ("yes", "no"):
        return False
    return _WH_QUESTION.match(query.rpartition("Answer the question:")[2].strip()) is not None


def find_citations(text: str, documents: int) -> tuple[int, ...]:
    """Positions (from 0) of the documents that a text cites, in order, without those that do not exist."""
    found: dict[int, None] = {}
    for match in _CITATION.finditer(text) if _may_cite(text) else ():
        for number in re.findall(r"\d+", match[0]):
            if 1 <= int(number) <= documents:
                found.setdefault(int(number) - 1)
    return tuple(found)


def strip_citations(text: str) -> str:
    """An answer without its citations. A bare "Doc 2" goes only from the end of something: it may be a title."""
    stripped = _STRIPPED.sub("", text.strip()) if _may_cite(text) else text.strip()
    return stripped.lstrip(" ,;:").rstrip()


def _may_cite(text: str) -> bool:
    """What no citation is without, found in a fraction of the steps."""
    return "doc" in text.lower()
