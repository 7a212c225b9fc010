"""JSON values in a model's reply.

All functions here are pure functions of text. Sub-queries are parsed in `sub_queries`, programs in `programs`, answers
in `answers`, plans of goals in `pyrag.methods.opera`. An unreadable reply raises `BadOutputError` with a sentence for
the model. Replies are untrusted: every parser takes time proportional to their length, and reads at most `MAX_REPLY`
characters.
"""

from __future__ import annotations

import re
from typing import Any

from pyrag.agents.parsing.loose_json import values_in
from pyrag.agents.parsing.thinking import split_thinking

_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def parse_json(text: str, opening: str) -> list[Any]:
    """Return the outermost JSON values of a reply, most likely first.

    Args:
        text: The reply.
        opening: Bracket that opens the values, "[" or "{".
    """
    rest = split_thinking(text, re.escape(opening) + r"\s*[\"'“{]")[1]
    return [value for place in places_of(rest) for value in reversed(list(values_in(place, opening)))]


def places_of(rest: str) -> list[str]:
    """Return the fenced blocks of a reply, last one first, and then the whole reply."""
    return [*reversed(_FENCE.findall(rest)), rest]
