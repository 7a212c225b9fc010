"""Thinking set apart from a model's reply, and the JSON in it.

Pure functions from text; lists of sub-queries are read in `sub_queries`, programs in `programs`, answers in
`answers`, plans of goals in `pyrag.methods.opera`. What cannot be read raises `BadOutputError` with a sentence for the
model. Replies are texts of strangers: every parser takes time in proportion to their length, and reads `MAX_REPLY`
characters at most.
"""

from __future__ import annotations

import bisect
import re
from typing import Any

from pyrag.agents.parsing.loose_json import values_in

MAX_REPLY = 100_000  # characters; a longer reply is a runaway, and its end decides
_BEGUN = 200  # characters at its beginning that may show that it thinks

_FAMILY = r"(?:\w{1,30}[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)"
# Both begin with the characters that a mark can begin with, so that a search passes over all others at once.
_MARK = re.compile(
    r"[<\[◁](?:(?P<open>(?<=\[)THINK\]|(?<=◁)think▷"
    rf"|(?<=<)(?:{_FAMILY}>|\|begin_of_thought\|>|\|channel\|>analysis<\|message\|>))"
    rf"|(?P<close>(?<=\[)/THINK\]|(?<=◁)/think▷|(?<=<)(?:/{_FAMILY}>|\|end_of_thought\|>))"
    r"|(?P<end>(?<=<)\|end\|>))",
    re.IGNORECASE,
)
_CONTROL = re.compile(
    r"<\|(?:(?:start\|>assistant<\|)?channel\|>final<\|message|im_end|eot_id|eom_id|python_tag|return|endoftext)\|>"
)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def clipped(text: str) -> str:
    """The end of a reply that is longer than anyone means, `MAX_REPLY` characters; thinking it began with stays so."""
    if len(text) <= MAX_REPLY:
        return text
    begun = _MARK.match(text[:_BEGUN].lstrip())
    return (begun[0] if begun and begun["open"] else "") + text[-MAX_REPLY:]


def split_thinking(text: str, payload: str) -> tuple[str, str]:
    """Split a reply into its thinking and the rest, for every common family of tags, closed or not.

    A closing tag that nobody opened ends thinking that the chat template had opened. A reply that is too long is
    clipped first. Takes linear time.

    Args:
        text: The reply.
        payload: Pattern of the rest's beginning, for a model that forgot to close its thinking.
    """
    text = _CONTROL.sub("", clipped(text))
    payloads = [found.start() for found in re.finditer(payload, text)]
    thinking: list[str] = []
    rest: list[str] = []
    inside, position, seen, held = False, 0, False, False
    for mark in _MARK.finditer(text):
        start, position, piece = position, mark.end(), text[position : mark.start()]
        if inside:
            thinking.append(piece)
            inside = mark["open"] is not None
            seen = True
            continue
        held = held or _any_between(payloads, start, mark.start())
        if mark["open"]:
            rest.append(piece)
            inside = True
        elif mark["end"] or (seen and held):
            rest.append(piece)
        else:
            thinking += (*rest, piece)
            rest, held = [], False
        seen = True
    (thinking if inside else rest).append(text[position:])
    return _resumed("\n".join(thinking), "".join(rest), payload)


def _any_between(places: list[int], start: int, end: int) -> bool:
    found = bisect.bisect_left(places, start)
    return found < len(places) and places[found] < end


def _resumed(thinking: str, rest: str, payload: str) -> tuple[str, str]:
    starts = [] if rest.strip() else [found.start() for found in re.finditer(payload, thinking)]
    if not starts:
        return thinking.strip(), rest.strip()
    return thinking[: starts[-1]].strip(), thinking[starts[-1] :].strip()


def parse_json(text: str, opening: str) -> list[Any]:
    """Return the outermost JSON values of a reply, the likeliest first.

    Args:
        text: The reply.
        opening: The bracket that they begin with, "[" or "{".
    """
    rest = split_thinking(text, re.escape(opening) + r"\s*[\"'“{]")[1]
    return [value for place in places_of(rest) for value in reversed(list(values_in(place, opening)))]


def places_of(rest: str) -> list[str]:
    """The fences of a reply, the last one first, and the whole of it."""
    return [*reversed(_FENCE.findall(rest)), rest]
