"""Reading the fields of an object that a model replied; what is not in form raises `BadOutputError`.

Fields go by any of their usual names, in any case, in JSON, as labelled lines (`**Decision:** YES`) or between tags.
What a reply turns on is read strictly; a side field reads as empty where it says nothing that can be used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.answer_places import text_of
from pyrag.agents.parsing.json_values import parse_json, split_thinking
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

# Other names of a field, as models use them, without blanks and underscores. Its own name goes before them.
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
_LABELLED = re.compile(r"[\s>*_#\-•]{0,12}(?P<key>[^\W\d_][\w /'-]{0,40}?)[\s*_`\"]{0,6}[:：](?P<said>.*)")
_ENCLOSED = re.compile(r"<(?P<key>[A-Za-z_]{2,40})>(?P<said>[^<>]{0,2000})</(?P=key)>")
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
    """Return the likeliest object of a reply that has a key, its fields under their proper names.

    Args:
        text: The reply.
        key: The proper name of a field.

    Raises:
        BadOutputError: No object has it.
    """
    for value in _objects(text):
        named = _named(value)
        if key in named and not (key == "decision" and isinstance(named[key], dict)):
            return named
    raise BadOutputError(f'it holds no JSON object with the key "{key}"')


def _objects(text: str) -> Iterator[dict[str, Any]]:
    values = parse_json(text, "{")
    found = [value for value in values if isinstance(value, dict)][:_MAX_OBJECTS]
    yield from found
    for value in found:
        yield from (one for one in value.values() if isinstance(one, dict))
    rest = split_thinking(text, r"(?i)\bdecision\b|\bquery\b")[1]
    yield {one["key"]: one["said"].strip() for one in _ENCLOSED.finditer(rest)}
    if not found:
        yield _labelled_lines(rest)


def _labelled_lines(rest: str) -> dict[str, Any]:
    """The fields of a reply that is written as lines with labels; a line without one goes on with the field above."""
    fields: dict[str, list[str]] = {}
    said: list[str] | None = None
    for line in lines_of(rest):
        label = _LABELLED.match(line[:4_000])
        if label is not None and _proper(label["key"]) is not None:
            said = fields.setdefault(label["key"], [])
            said.append(label["said"].strip(' *_`"'))
        elif said is not None:
            said.append(line.strip())
    return {key: " ".join(parts).strip() for key, parts in fields.items()}


def _named(value: dict[str, Any]) -> dict[str, Any]:
    """An object with its fields under their proper names; its other fields stay as they are."""
    plain = {_plain(key): said for key, said in value.items()}
    found = dict(value)
    for name, others in _NAMES.items():
        said = next((plain[one] for one in (name, *others.split()) if one in plain), None)
        if name not in found and any(one in plain for one in (name, *others.split())):
            found[name] = said
    return found


def _proper(key: str) -> str | None:
    plain = _plain(key)
    return next((name for name, others in _NAMES.items() if plain == name or plain in others.split()), None)


def _plain(key: Any) -> str:
    return re.sub(r"[\W_]", "", str(key).casefold())


def decision_of(said: Any) -> bool:
    """True if a decision is YES, however it goes on ("YES - the documents suffice")."""
    if isinstance(said, list) and len(said) == 1:
        said = said[0]
    found = None if isinstance(said, list | dict) else _DECIDED.match(str(said)[:200])
    word = found[1].casefold() if found else ""
    if word in _YES or word in _NO:
        return word in _YES
    raise BadOutputError(f'"decision" must be YES or NO, not {repr(said)[:80]}')


def line_of(value: dict[str, Any], key: str) -> str:
    """Return a text field on one line; empty if it is missing.

    Args:
        value: The object.
        key: The proper name of the field.

    Raises:
        BadOutputError: It holds neither a text nor a number.
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
    """Return a field of any type as text on one line: lists with commas, yes or no, nothing for null.

    Args:
        value: The object.
        key: The proper name of the field.
    """
    return worded(" ".join(text_of(value.get(key)).split()))


def worded(text: str) -> str:
    """A text that has a letter or digit in it; empty for others, such as the "..." of a form."""
    return text if _WORD.search(text) else ""


def texts_of(said: Any) -> list[str]:
    """The texts of a list, of an object's values, or of a text that lists them with commas."""
    if isinstance(said, str):
        return [one.strip() for one in re.split(r"[,;\n]", said) if one.strip()]
    values = list(said.values()) if isinstance(said, dict) else said if isinstance(said, list) else []
    return [text for one in values if (text := " ".join(text_of(one).split()))]


def positions_of(said: Any, documents: int) -> tuple[int, ...]:
    """Return the positions (from 0) of the documents that a field lists.

    Args:
        said: The field in any form that `numbers_of` reads.
        documents: How many documents there are; higher numbers are ignored.
    """
    exact = [one for one in numbers_of(said) if 1 <= one <= documents]
    return tuple(dict.fromkeys(one - 1 for one in exact))


def numbers_of(said: Any) -> list[int]:
    """The numbers in 2, "Doc 2", "1 and 3", [1, "Doc 3"] or [{"id": 1, "title": "…"}]."""
    if isinstance(said, bool) or said is None:
        return []
    if isinstance(said, int):
        return [said]
    if isinstance(said, float):
        return [int(said)] if said.is_integer() else []
    if isinstance(said, str):
        return [int(one) for one in _NUMBER.findall(said[:2_000])]
    if isinstance(said, list):
        return [number for one in said for number in numbers_of(one)]
    return numbers_of(_first_number(said)) if isinstance(said, dict) else []


def _first_number(said: dict[str, Any]) -> Any:
    keys = {_plain(key): one for key, one in said.items()}
    names = ("id", "number", "doc", "document", "docid", "documentid", "documentnumber", "index", "position")
    return next((keys[name] for name in names if name in keys), None)


def share_of(said: Any) -> float | None:
    """A confidence from 0 to 1 in 0.9, 95, "95%", "9/10" or "high"; None where it is none of these."""
    if isinstance(said, bool) or said is None:
        return None
    if isinstance(said, int | float):
        return _share(float(said))
    if not isinstance(said, str):
        return None
    plain = said[:200].casefold().strip(" .*\"'")
    named = next((share for word, share in _WORDS.items() if plain.startswith(word)), None)
    found = _RATIO.search(plain)
    if found is None or named is not None:
        return named
    value = float(found[1].replace(",", "."))
    return _share(value / 100) if found[2] else _share(value / (float(found[3]) or 1)) if found[3] else _share(value)


def _share(value: float) -> float | None:
    if not math.isfinite(value) or not 0 <= value <= 100:
        return None
    return value if value <= 1 else value / 100
