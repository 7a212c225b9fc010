"""What a model's reply means, part one: its thinking set apart, JSON in it, and the list of sub-queries.

Pure functions from text; programs are read in `parsing_code`, answers in `parsing_answer`, plans of goals in
`parsing_goals`. What cannot be read raises `BadOutputError` with a sentence that the model can be shown.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from pyrag.errors import BadOutputError

MAX_SUB_QUERIES = 20
_MAX_TEXT = 50_000  # a longer reply is a runaway; its end decides
_MAX_STARTS = 100

_FAMILY = r"(?:\w+[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)"
# Both begin with the characters that a mark can begin with, so that a search passes over all others at once.
_MARK = re.compile(
    r"[<\[◁](?:(?P<open>(?<=\[)THINK\]|(?<=◁)think▷"
    rf"|(?<=<)(?:{_FAMILY}>|\|begin_of_thought\|>|\|channel\|>analysis<\|message\|>))"
    rf"|(?P<close>(?<=\[)/THINK\]|(?<=◁)/think▷|(?<=<)(?:/{_FAMILY}>|\|end_of_thought\|>))"
    r"|(?P<end>(?<=<)\|end\|>))",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"<\|(?:(?:start\|>assistant<\|)?channel\|>final<\|message|im_end|eot_id|return|endoftext)\|>")
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_LIST_START = r"\[\s*[\"'{]"
_KEYS = ("sub_query", "sub-query", "subquery", "sub_question", "question", "query", "text")


def split_thinking(text: str, payload: str) -> tuple[str, str]:
    """A reply as (thinking, rest), for every common family of tags, closed or not.

    A closing tag that nobody opened ends thinking that the chat template had opened. Where all of the reply would be
    thinking, its last part from the pattern `payload` on is the rest: the model forgot to close.
    """
    text = _CONTROL.sub("", text)
    thinking: list[str] = []
    rest: list[str] = []
    inside, position, seen = False, 0, False
    for mark in _MARK.finditer(text):
        piece, position = text[position : mark.start()], mark.end()
        if inside:
            thinking.append(piece)
            inside = mark["open"] is not None
        elif mark["open"]:
            rest.append(piece)
            inside = True
        elif mark["end"] or (seen and re.search(payload, "".join(rest) + piece)):
            rest.append(piece)
        else:
            thinking, rest = [*thinking, *rest, piece], []
        seen = True
    (thinking if inside else rest).append(text[position:])
    return _resumed("\n".join(thinking), "".join(rest), payload)


def _resumed(thinking: str, rest: str, payload: str) -> tuple[str, str]:
    starts = [] if rest.strip() else [found.start() for found in re.finditer(payload, thinking)]
    if not starts:
        return thinking.strip(), rest.strip()
    return thinking[: starts[-1]].strip(), thinking[starts[-1] :].strip()


def parse_sub_queries(text: str) -> tuple[str, ...]:
    """The sub-queries of a reply: the last proper list in a fence, else the last one in the text."""
    rest = split_thinking(text[-_MAX_TEXT:], _LIST_START)[1]
    problem = "it holds no JSON list of sub-queries"
    for place in (*reversed(_FENCE.findall(rest)), rest):
        for value in reversed(list(_values(place, "["))):
            try:
                return _checked(value)
            except BadOutputError as error:
                problem = str(error)
    raise BadOutputError(problem)


def parse_json(text: str, opening: str) -> list[Any]:
    """Outermost JSON values of a reply that begin with `opening` ("[" or "{"), the likeliest first."""
    rest = split_thinking(text[-_MAX_TEXT:], re.escape(opening) + r"\s*[\"'{]")[1]
    return [
        value
        for place in (*reversed(_FENCE.findall(rest)), rest)
        for value in reversed(list(_values(place, opening)))
    ]  # fmt: skip


def _values(text: str, opening: str) -> Iterator[Any]:
    """Every outermost list or object in a text, written as JSON or, as models do, as Python."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MAX_STARTS):
        position = text.find(opening, position)
        if position < 0:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            value, position = _python_value(text, position)
        if isinstance(value, list | dict):
            yield value


def _python_value(text: str, start: int) -> tuple[Any, int]:
    """A value as Python writes it (single quotes, a comma before the end), and where to go on."""
    closing = "]" if text[start] == "[" else "}"
    ends = itertools.islice(re.finditer(re.escape(closing), text[start : start + 10_000]), 10)
    for end in (start + found.end() for found in ends):
        try:
            return ast.literal_eval(text[start:end]), end
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None, start + 1


def _checked(values: list[Any]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for value in values:
        query = " ".join(_query_of(value).split())
        if not query:
            raise BadOutputError("one of the sub-queries is empty")
        found.setdefault(query.casefold(), query)
    if not found:
        raise BadOutputError("the list of sub-queries is empty")
    if len(found) > MAX_SUB_QUERIES:
        raise BadOutputError(f"it holds {len(found)} sub-queries; {MAX_SUB_QUERIES} are the most allowed")
    return tuple(found.values())


def _query_of(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[key] for key in _KEYS if key in value), value)
    if not isinstance(value, str):
        raise BadOutputError(f"every sub-query must be a string, but one is {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return repr(value)[:80]
