"""Passages, sub-queries and facts as text for a prompt.

Retrieved text is hostile. It may hold the marks that fence it, headings that imitate another document, or control
tokens of chat templates, which servers interpret inside a message too. Therefore, the fence is a mark that no passage
contains, and false headings and control tokens get other brackets. Everything else is unchanged.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from pyrag.trace.model import Passage

_HEADING = re.compile(r"(\n[^\S\n]*+)\[(Doc(?:ument)?\s*\d+)\]", re.IGNORECASE)
# Control tokens of ChatML, Llama 3, gpt-oss and DeepSeek, then of Gemma, Llama 2 and Mistral.
_CONTROL_TOKEN = re.compile(
    r"<([|｜][^<>\n]{1,40}[|｜])>|<(/?(?:s|bos|eos|(?:start|end)_of_turn))>|<<(/?SYS)>>"
    r"|\[(/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\]"
)


def fenced_passages(passages: Sequence[Passage]) -> tuple[str, str]:
    """Return a fence that no passage contains, and the passages as `[Doc 1]`, `[Doc 2]`, …"""
    documents = "\n\n".join(f"[Doc {number}]{_written(passage)}" for number, passage in enumerate(passages, start=1))
    folded = documents.casefold()
    names = itertools.chain(["documents"], (f"documents-{i}" for i in itertools.count(2)))
    fence = next(name for name in names if f"{name}>" not in folded)
    return fence, documents


def numbered(sub_queries: Sequence[str]) -> str:
    """Return sub-queries as a numbered list, one per line."""
    return "\n".join(f"{number}. {query}" for number, query in enumerate(sub_queries, start=1))


def with_facts(facts: str, question: str) -> str:
    """Return a query for the Answer agent's aggregation mode. The embedded reader splits it again.

    Args:
        facts: Earlier answers, each after its question.
        question: Question to answer from the facts.
    """
    return f"Given: {facts}. Answer the question: {question}"


def _written(passage: Passage) -> str:
    """Return a passage preceded by a line break, since a heading must follow one."""
    title, text = passage.title.strip(), passage.text.strip()
    whole = text if not title or text.startswith(title) else f"{title}\n{text}"
    shown = f"\n{whole}"
    if "[" not in shown and "<" not in shown:
        return shown
    return _CONTROL_TOKEN.sub(lambda token: f"({token[token.lastindex or 0]})", _HEADING.sub(r"\1(\2)", shown))
