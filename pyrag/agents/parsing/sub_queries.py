"""The list of sub-queries in a model's reply, in JSON or in any other form of a list.

JSON takes precedence over other forms, a list with a fitting key over an unnamed list, and a later list over an earlier
one, which may be a draft or the prompt's example. The list is then checked strictly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.json_values import places_of
from pyrag.agents.parsing.loose_json import values_in
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.errors import BadOutputError

MAX_SUB_QUERIES = 20
MAX_QUERY = 1_000  # characters
_LIST_START = r"\[\s*[\"'“{]|\{\s*[\"'“]\w*(?:quer|quest|step|hop|goal)"
_KEYS = (
    "sub_query", "sub-query", "subquery", "sub_question", "subquestion", "question", "query", "text", "q", "content",
)  # fmt: skip
_NAMED = re.compile(
    r"(?:sub|atomic|decomposed|search)?(?:quer(?:y|ies)|questions?|goals?|tasks?)|steps?|hops?|decomposition|list"
)
_NUMBERED = re.compile(
    r"(?:(?:sub)?(?:query|question|q|step|hop|goal|item)?\d{1,2}(?:query|question|text)?)|first|second|third|fourth"
    r"|fifth"
)

# In front of an item: a bullet or a number, a label, and emphasis around either.
_BULLET = r"(?:[-*•‣◦●▪–—+→>·]|\(?(?:\d{1,2}|[a-hivx]{1,3})[.):、]|\d️?⃣)"
_LABEL = (
    r"(?:(?:sub|atomic|follow)?[ _-]?(?:up)?[ _-]?(?:quer(?:y|ies)|questions?|q|goal|task)|step|hop|first|second"
    r"|third|next"
    r"|then|finally)[ _-]?\d{0,2}"
)
_MARKER = re.compile(
    rf"[ \t]{{0,40}}(?:#{{1,6}}[ \t]+)?(?:[*_]{{1,3}}(?=\(?\d{{1,2}}[.)]))?"
    rf"(?P<bullet>{_BULLET}[ \t]+|{_BULLET}(?=[^\W\d]|[*_\"“]))?[ \t]*"
    rf"[*_`\"“]{{0,3}}(?P<label>{_LABEL}[*_`]{{0,3}}\s?[:：.)—–-]+|\[?{_LABEL}\]?[ \t]?[:：])?[*_`]{{0,3}}[ \t]*",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"<(\w{1,30})(?:\s[^<>]{0,200})?>([^<>]{1,1000})</\1\s?>")
_TAG_NAME = re.compile(
    r"(?:sub|atomic)?[ _-]?(?:query|question|q|item|li|step|hop|goal|string|value)[ _-]?\d{0,2}", re.IGNORECASE
)
_TAIL = re.compile(r"(?<=[?？])(?:[*_`\"”’]{1,4})?\s*(?:[(（\[—–→#/,;|-].{0,500})?$")
_AROUND = " \t\"'“”‘’`*_|,;"


def parse_sub_queries(text: str) -> tuple[str, ...]:
    """Return a reply's sub-queries. Raises `BadOutputError` if the reply has no well-formed list."""
    rest = _decoded(split_thinking(text, _LIST_START)[1])
    problem = "it holds no JSON list of sub-queries"
    for values in _json_lists(rest):
        try:
            return _checked(values)
        except BadOutputError as error:
            problem = str(error)
    listed = _tagged_items(rest) or _listed_items(rest)
    if listed:
        return _checked(listed)
    raise BadOutputError(problem)


def _decoded(rest: str) -> str:
    """Return the text of a reply that is one JSON string (a list encoded twice); otherwise the reply."""
    quoted = rest.strip()
    if not (quoted.startswith(('"[', '"{')) and quoted.endswith('"')):
        return rest
    try:
        return str(json.loads(quoted))
    except ValueError:
        return rest


def _json_lists(rest: str) -> Iterator[list[Any]]:
    for place in places_of(rest):
        values = list(values_in(place, "[{"))
        if len(values) > 1 and all(isinstance(value, dict) and _asks(value) for value in values):
            yield values  # one object per line
        for value in reversed(values):
            if isinstance(value, dict):
                yield from _named_lists(value)
            else:
                yield _flat(value)


def _asks(value: Mapping[str, Any]) -> bool:
    return any(isinstance(inner, str) and _bare_key(key) in map(_bare_key, _KEYS) for key, inner in value.items())


def _named_lists(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield the values that an object holds under a name for sub-queries, or under numbered names."""
    for key, inner in value.items():
        if _NAMED.fullmatch(_bare_key(key)) and not isinstance(inner, str):
            yield from _lists_under(inner)
    numbered = [inner for key, inner in value.items() if _NUMBERED.fullmatch(_bare_key(key)) and inner]
    if numbered and all(isinstance(item, str | dict) for item in numbered):
        yield numbered
    for inner in value.values():
        if isinstance(inner, dict) and any(_NAMED.fullmatch(_bare_key(key)) for key in inner):
            yield from _named_lists(inner)
    for key, inner in value.items():
        if _NAMED.fullmatch(_bare_key(key)) and isinstance(inner, str) and _bare_key(key) not in ("question", "query"):
            yield _listed_items(inner) or [inner]
    if value and all(isinstance(inner, str) and inner.rstrip().endswith(("?", "？")) for inner in value.values()):
        yield list(value.values())


def _lists_under(inner: Any) -> Iterator[list[Any]]:
    if isinstance(inner, list):
        yield _flat(inner)
    elif isinstance(inner, dict):
        nested = list(_named_lists(inner))
        yield from nested
        if not nested and inner:
            yield list(inner.values())


def _flat(values: list[Any]) -> list[Any]:
    """Return a list that contains only lists, or one object with numbered keys, as one flat list."""
    if values and all(isinstance(item, list) for item in values):
        return [inner for inner_list in values for inner in inner_list]
    if len(values) == 1 and isinstance(values[0], dict) and not any(key in values[0] for key in _KEYS):
        return next(iter(_named_lists(values[0])), values)
    return values


def _bare_key(key: str) -> str:
    return re.sub(r"[\s_.-]", "", key.casefold())


def _tagged_items(rest: str) -> list[str]:
    """Return the items between tags that are named like an item."""
    return [tag[2] for tag in _TAGGED.finditer(rest) if _TAG_NAME.fullmatch(tag[1])]


def _listed_items(rest: str) -> list[str]:
    """Return the items of a Markdown list, of a table, or of lines, if they read like questions."""
    lines = [line for line in lines_of(rest) if line.strip()]
    if any(line.lstrip().startswith(("[", "{")) for line in lines):
        return []  # JSON that cannot be read, and that may be cut off
    items = [item for line in lines for item in _items_of(line)]
    questions = [text for text, marked in items if marked and text.endswith(("?", "？"))]
    if questions:
        return questions
    if items and all(text.endswith(("?", "？")) for text, _ in items):
        return [text for text, _ in items]
    marked = [text for text, is_item in items if is_item]
    return marked if len(marked) >= 2 and all(len(text.split()) >= 3 for text in marked) and _introduced(items) else []


def _introduced(items: list[tuple[str, bool]]) -> bool:
    """Return True if there is nothing but the list, and at most one line before it that ends with a colon."""
    others = [text for text, marked in items if not marked]
    return all(text.rstrip("*_ ").endswith((":", "：")) for text in others)


def _items_of(line: str) -> list[tuple[str, bool]]:
    """Return a line's texts, each with True if it is marked as an item. Any cell of a table row may hold an item."""
    if line.lstrip().startswith("|"):
        cells = [cell.strip(_AROUND) for cell in line.split("|")]
        return [(cell, True) for cell in cells if cell.endswith(("?", "？"))][:1]
    marker = _MARKER.match(line)
    text = line[marker.end() if marker else 0 :].strip()
    marked = marker is not None and bool(marker["bullet"] or marker["label"])
    return [(_TAIL.sub("", text).strip(_AROUND), marked)] if text else []


def _checked(values: list[Any]) -> tuple[str, ...]:
    queries: dict[str, str] = {}
    for value in values:
        query = " ".join(_query_of(value).split())
        if not query:
            raise BadOutputError("one of the sub-queries is empty")
        if len(query) > MAX_QUERY:
            raise BadOutputError(f"one of the sub-queries has {len(query)} characters; at most {MAX_QUERY} are allowed")
        queries.setdefault(query.casefold(), query)
    if not queries:
        raise BadOutputError("the list of sub-queries is empty")
    if len(queries) > MAX_SUB_QUERIES:
        raise BadOutputError(f"it holds {len(queries)} sub-queries; at most {MAX_SUB_QUERIES} are allowed")
    return tuple(queries.values())


def _query_of(value: Any) -> str:
    if isinstance(value, dict):
        keys = {_bare_key(key): key for key in value}
        named = next((keys[_bare_key(key)] for key in _KEYS if _bare_key(key) in keys), None)
        texts = [text for text in value.values() if isinstance(text, str)]
        value = value[named] if named is not None else _only_question(texts) or value
    if not isinstance(value, str):
        raise BadOutputError(f"every sub-query must be a string, but one is {_shown(value)}")
    return value


def _only_question(texts: list[str]) -> str:
    questions = [text for text in texts if text.rstrip().endswith(("?", "？"))]
    return questions[0] if len(questions) == 1 else ""


def _shown(value: Any) -> str:
    return repr(value)[:80]
