"""Reference of what programs may call, generated from signatures and docstrings, for people and assistants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from pyrag.methods.own_program import MAX_CALLS, MAX_SOURCE_BYTES

_HEAD = f"""# Programs

A program is Python over the functions below. It runs top to bottom in a sandbox and assigns its result to
`final_answer`: a text, number, list or dict, answers or passages. Independent calls run in parallel by themselves, also
in loops and comprehensions; equal calls are made once. No `await`, no files, no network; imports: math, re, datetime,
json, statistics, itertools, collections. At most {MAX_SOURCE_BYTES // 1024} KiB of source and {MAX_CALLS} model calls,
unless the budget says otherwise. `print` returns text to the caller.

    docs = retrieve(f"founder of {{company}}", topk=5)
    founder = answer(f"Who founded {{company}}?", docs)
    born = answer(f"When was {{founder}} born?", retrieve(f"{{founder}} born"))
    final_answer = {{"founder": founder, "year": parse_year(born)}}

An answer is a str that may be unknown: test `is_known(x)` before you use it in a query or compute with it. Ask one
simple question per `answer`, with the passages that were retrieved for it. Inputs are names that the program finds.
"""


def retrieve(query: str, topk: int = 5, where: str | dict[str, Any] | None = None) -> list[Any]:  # type: ignore[empty-body]
    """Return the passages that match a query best.

    A passage has `.id`, `.title`, `.text` and `.score`, and `str(passage)` is its text.

    Args:
        query: Search text: names and keywords, or one simple question; at most 8 KB.
        topk: Maximum number of passages, 1 to 100.
        where: Filter of passages by their metadata, such as 'year >= 2020 and team = "ops"'.
    """


def answer(query: str, docs: list[Any] | None = None) -> str:  # type: ignore[empty-body]
    """Return a short answer from passages, or "unknown" if they do not hold it.

    The answer has `.known`, `.citations` (ids of passages) and `.confidence` (0 to 1, or None). An unknown answer is
    tried again with more passages by itself.

    Args:
        query: One question; write facts found before into it with an f-string.
        docs: Passages that `retrieve` returned, also several lists joined; None to combine facts in the query.
    """


def program_reference(tools: str = "") -> str:
    """Return the reference as Markdown.

    Args:
        tools: Signatures and descriptions of the caller's tools, as `pyrag.tools.tool.describe` writes them.
    """
    from pyrag_helpers import HELPERS

    parts = [_HEAD, "## Search and answer\n", *_entries((retrieve, answer))]
    parts += ["## Helpers\n\nPure functions over texts; they never guess, and raise `ValueError` instead.\n"]
    parts += _entries(HELPERS.values())
    if tools:
        parts.append(f"## Tools\n\n{tools.strip()}\n")
    return "\n".join(parts)


def _entries(functions: Iterable[Callable[..., object]]) -> list[str]:
    return [
        f"### `{function.__name__}{_signature(function)}`\n\n{inspect.getdoc(function)}\n" for function in functions
    ]


def _signature(function: Callable[..., object]) -> str:
    """Return a signature as the source writes it."""
    signature = inspect.signature(function)
    return str(signature).replace("'", "").replace("list[Any]", "list[Passage]").replace(", Any]", ", …]")
