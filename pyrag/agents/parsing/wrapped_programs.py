"""Programs that models wrap in something else than a fence: tags, JSON, prompts of an interpreter, escaped text.

Only texts are taken apart here; which of them is a program is for `parsing_code` to say, by compiling them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from pyrag.agents.parsing.json_values import places_of
from pyrag.agents.parsing.loose_json import values_in

_KEYS = ("program", "code", "python", "source", "script", "plan", "answer", "content", "solution")
_TAG = re.compile(r"</?[\w|]{1,30}>|<\|\w{1,30}\|>|\[/?[A-Z]{2,20}\]")
_MARK = re.compile(r"(?:```|~~~|\'\'\'|\"\"\")(?:[Pp]y(?:thon)?3?)?[ \t]*|[Pp]ython:?")
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_MAX_CODE = 64 * 1024  # characters
_MAX_OBJECTS = 10


def candidates(rest: str) -> Iterator[str]:
    """Texts within a reply that may be its program, the likeliest first.

    Args:
        rest: The reply without its thinking.
    """
    plain = rest.replace("\ufeff", "").replace("\u00a0", " ").replace("\r\n", "\n")
    yield from _in_json(plain)
    for text in dict.fromkeys((plain, html.unescape(plain))):
        lines = _code_lines(text)
        yield "\n".join(lines)
        yield "\n".join(_without_prompts(lines))


def _in_json(text: str) -> Iterator[str]:
    """The texts that objects hold under a name for code."""
    if "{" not in text:
        return
    for place in places_of(text):
        objects = [value for value in values_in(place, "{") if isinstance(value, dict)]
        for value in reversed(objects[-_MAX_OBJECTS:]):
            yield from _under_keys(value)


def _under_keys(value: dict[str, Any]) -> Iterator[str]:
    for key in _KEYS:
        said = value.get(key)
        if isinstance(said, list) and said and all(isinstance(line, str) for line in said):
            said = "\n".join(said)
        if isinstance(said, str):
            yield "\n".join(_code_lines(said[:_MAX_CODE]))
    for inner in value.values():
        if isinstance(inner, dict):
            yield from _under_keys({key: said for key, said in inner.items() if not isinstance(said, dict)})


def _code_lines(text: str) -> list[str]:
    """Lines without the tags, fences and names of the language that stand around a program."""
    lines = _TAG.sub("", text).strip().strip("`").split("\n")
    return [_MARK.sub("", line.lstrip(), count=1).lstrip() if _MARK.match(line.lstrip()) else line for line in lines]


def _without_prompts(lines: list[str]) -> list[str]:
    """The lines that were typed at the prompts of an interpreter, where there are any."""
    typed = [line.lstrip() for line in lines if _PROMPT.match(line.lstrip())]
    return [_PROMPT.sub("", line, count=1) for line in typed]
