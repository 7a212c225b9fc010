from __future__ import annotations

import re

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
