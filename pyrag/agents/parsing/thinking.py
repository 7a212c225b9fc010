"""Thinking in a model's reply: the text between tags such as `<think>` and `</think>`, which is not part of the reply.

Replies are untrusted: the functions take time proportional to their length, and read at most `MAX_REPLY` characters.
"""

from __future__ import annotations

import bisect
import re

MAX_REPLY = 100_000  # characters; of a longer reply, only the end is read
_BEGUN = 200  # characters at the beginning that are searched for an opening tag of thinking

_FAMILY = r"(?:\w{1,30}[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)"
# The pattern begins with the characters that can begin a mark, so a search skips all others quickly.
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


def clipped(text: str) -> str:
    """Return the last `MAX_REPLY` characters of an overlong reply, which keeps its start of thinking if it has one."""
    if len(text) <= MAX_REPLY:
        return text
    begun = _MARK.match(text[:_BEGUN].lstrip())
    return (begun[0] if begun and begun["open"] else "") + text[-MAX_REPLY:]


def split_thinking(text: str, payload: str) -> tuple[str, str]:
    """Split a reply into its thinking and the rest, for every common family of tags, closed or not.

    A closing tag without an opening tag ends thinking that the chat template opened. An overlong reply is clipped
    first. This takes linear time.

    Args:
        text: The reply.
        payload: Pattern of the beginning of the rest, for a model that does not close its thinking.
    """
    text = _CONTROL.sub("", clipped(text))
    payloads = [match.start() for match in re.finditer(payload, text)]
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
    next_place = bisect.bisect_left(places, start)
    return next_place < len(places) and places[next_place] < end


def _resumed(thinking: str, rest: str, payload: str) -> tuple[str, str]:
    starts = [] if rest.strip() else [match.start() for match in re.finditer(payload, thinking)]
    if not starts:
        return thinking.strip(), rest.strip()
    return thinking[: starts[-1]].strip(), thinking[starts[-1] :].strip()
