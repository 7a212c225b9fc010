"""Fields of an object in a model's reply; malformed fields raise `BadOutputError`.

Fields may have any of their usual names, in any case, in JSON, as labelled lines (`**Decision:** YES`) or between tags.
Essential fields are parsed strictly; an optional field is empty if it has no usable value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.answer_places import text_of
from pyrag.agents.parsing.json_values import parse_json
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.errors import BadOutputError

_YES = frozenset(
    ("yes", "true", "y", "sufficient", "accepted", "accept", "approved", "approve", "answerable", "1", "是")
)
_NO = frozenset((
    "no", "false", "n", "insufficient", "rejected", "reject", "unanswerable", "not sufficient", "not enough",
    "not accepted", "not answerable", "0", "否",
))  # fmt: skip
_WORD = re.compile(r"\w")
_DECIDED = re.compile(
    r"[\W_]*(not (?:sufficient|enough|accepted|answerable)|\w+)\b(?![ /]*(?:or|/)[ /]*no\b)", re.IGNORECASE
)

# Alternative names of a field that models use, without blanks and underscores. The proper name takes precedence.
_NAMES = {
    "decision": "verdict judgement judgment sufficient issufficient sufficiency answerable isanswerable cananswer "
    "accepted "
    "isaccepted approved",
    "answer": "finalanswer shortanswer answertext response result",
    "confidence": "confidencescore confidencelevel certainty probability score",
    "analysis": "reasoning rationale explanation thought thoughts justification reason",
    "documents": "docs sources citations passages useddocuments documentsused documentids documentnumbers "
    "supportingdocuments "
    "relevantdocuments selecteddocuments selected relevant keep evidence",
    "missing": "missinginformation missinginfo whatismissing lacking informationneeded neededinformation gap gaps",
    "query": "rewrittenquery newquery rewritequery rewritten rewrite searchquery newsearchquery refinedquery "
    "reformulatedquery "
    "improvedquery queryrewrite nextquery alternativequery queries newqueries rewrittenqueries searchqueries "
    "rewrittenquestion q",
    "keywords": "keyword keyterms terms searchterms addedkeywords",
    "strategy": "approach change changes",
    "critique": "criticism feedback comment problem issue issues whatiswrong reason",
    "insights": "insight lessons", "rules": "rule operationalrules", "principles": "principle",
    "agents": "agent blamed atfault", "operation": "op action", "entries": "entry ids entryids",
}  # fmt: skip
_MAX_OBJECTS = 50
_LABELLED = re.compile(r"[\s>*_#\-•]{0,12}(?P<key>[^\W\d_][\w /'-]{0,40}?)[\s*_`\"]{0,6}[:：](?P<value>.*)")
_ENCLOSED = re.compile(r"<(?P<key>[A-Za-z_]{2,40})>(?P<value>[^<>]{0,2000})</(?P=key)>")
_NUMBER = re.compile(r"\d{1,6}")
_WORDS = {
    "very high": 0.95,
    "high": 0.9,
    "medium": 0.6,
    "moderate": 0.6,
    "low": 0.3,
    "very low": 0.1,
    "none": 0.0,
    "certain": 1.0,
}
_RATIO = re.compile(r"(\d{1,3}(?:[.,]\d{1,6})?)\s?(?:(%)|(?:/|out of|von)\s?(\d{1,3}))?")


def object_with(text: str, key: str) -> dict[str, Any]:
    """Return the most likely object of a reply that has a key, with its fields under their proper names.

    Args:
        text: The reply.
        key: Proper name of a field.

    Raises:
        BadOutputError: No object has the key.
    """
    for value in _objects(text):
        named = _named(value)
        if key in named and not (key == "decision" and isinstance(named[key], dict)):
            return named
    raise BadOutputError(f'it holds no JSON object with the key "{key}"')


def _objects(text: str) -> Iterator[dict[str, Any]]:
    values = parse_json(text, "{")
    objects = [value for value in values if isinstance(value, dict)][:_MAX_OBJECTS]
    yield from objects
    for value in objects:
        yield from (inner for inner in value.values() if isinstance(inner, dict))
    rest = split_thinking(text, r"(?i)\bdecision\b|\bquery\b")[1]
    yield {match["key"]: match["value"].strip() for match in _ENCLOSED.finditer(rest)}
    if not objects:
        yield _labelled_lines(rest)


def _labelled_lines(rest: str) -> dict[str, Any]:
    """Return the fields of a reply written as labelled lines; a line without a label continues the previous field."""
    fields: dict[str, list[str]] = {}
    parts: list[str] | None = None
    for line in lines_of(rest):
        label = _LABELLED.match(line[:4_000])
        if label is not None and _proper_name(label["key"]) is not None:
            parts = fields.setdefault(label["key"], [])
            parts.append(label["value"].strip(' *_`"'))
        elif parts is not None:
            parts.append(line.strip())
    return {key: " ".join(lines).strip() for key, lines in fields.items()}


def _named(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its fields under their proper names; unknown fields are unchanged."""
    plain = {_plain(key): field for key, field in value.items()}
    renamed = dict(value)
    for name, others in _NAMES.items():
        field = next((plain[key] for key in (name, *others.split()) if key in plain), None)
        if name not in renamed and any(key in plain for key in (name, *others.split())):
            renamed[name] = field
    return renamed


def _proper_name(key: str) -> str | None:
    plain = _plain(key)
    return next((name for name, others in _NAMES.items() if plain == name or plain in others.split()), None)


def _plain(key: Any) -> str:
    return re.sub(r"[\W_]", "", str(key).casefold())


def decision_of(value: Any) -> bool:
    """Return True if a decision is YES, whatever follows it ("YES - the documents suffice")."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    word_match = None if isinstance(value, list | dict) else _DECIDED.match(str(value)[:200])
    word = word_match[1].casefold() if word_match else ""
    if word in _YES or word in _NO:
        return word in _YES
    raise BadOutputError(f'"decision" must be YES or NO, not {repr(value)[:80]}')


def line_of(value: dict[str, Any], key: str) -> str:
    """Return a text field on one line; empty if it is missing.

    Args:
        value: The object.
        key: Proper name of the field.

    Raises:
        BadOutputError: The field is neither a text nor a number.
    """
    text = value.get(key)
    if text is None:
        return ""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return str(text)
    if not isinstance(text, str):
        raise BadOutputError(f'"{key}" must be a string, not {repr(text)[:80]}')
    return worded(" ".join(text.split()))


def loose_line_of(value: dict[str, Any], key: str) -> str:
    """Return a field of any type as one line: lists joined by commas, booleans as yes or no, null as an empty text.

    Args:
        value: The object.
        key: Proper name of the field.
    """
    return worded(" ".join(text_of(value.get(key)).split()))


def worded(text: str) -> str:
    """Return a text if it contains a letter or digit, otherwise an empty text (such as for the "..." of a form)."""
    return text if _WORD.search(text) else ""


def texts_of(value: Any) -> list[str]:
    """Return the texts of a list, of an object's values, or of a text that lists them with commas."""
    if isinstance(value, str):
        return [part.strip() for part in re.split(r"[,;\n]", value) if part.strip()]
    values = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in values if (text := " ".join(text_of(item).split()))]


def positions_of(value: Any, documents: int) -> tuple[int, ...]:
    """Return the positions (from 0) of the documents that a field lists.

    Args:
        value: The field, in any form that `numbers_of` reads.
        documents: Number of documents; higher numbers are ignored.
    """
    exact = [number for number in numbers_of(value) if 1 <= number <= documents]
    return tuple(dict.fromkeys(number - 1 for number in exact))


def numbers_of(value: Any) -> list[int]:
    """Return the numbers in 2, "Doc 2", "1 and 3", [1, "Doc 3"] or [{"id": 1, "title": "…"}]."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, float):
        return [int(value)] if value.is_integer() else []
    if isinstance(value, str):
        return [int(digits) for digits in _NUMBER.findall(value[:2_000])]
    if isinstance(value, list):
        return [number for item in value for number in numbers_of(item)]
    return numbers_of(_first_number(value)) if isinstance(value, dict) else []


def _first_number(value: dict[str, Any]) -> Any:
    keys = {_plain(key): item for key, item in value.items()}
    names = ("id", "number", "doc", "document", "docid", "documentid", "documentnumber", "index", "position")
    return next((keys[name] for name in names if name in keys), None)


def share_of(value: Any) -> float | None:
    """Return a confidence from 0 to 1, read from 0.9, 95, "95%", "9/10" or "high"; None for any other value."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _share(float(value))
    if not isinstance(value, str):
        return None
    plain = value[:200].casefold().strip(" .*\"'")
    named = next((share for word, share in _WORDS.items() if plain.startswith(word)), None)
    ratio = _RATIO.search(plain)
    if ratio is None or named is not None:
        return named
    share = float(ratio[1].replace(",", "."))
    return _share(share / 100) if ratio[2] else _share(share / (float(ratio[3]) or 1)) if ratio[3] else _share(share)


def _share(value: float) -> float | None:
    if not math.isfinite(value) or not 0 <= value <= 100:
        return None
    return value if value <= 1 else value / 100
