"""Passages, sub-queries and facts as they are written into a prompt.

Retrieved text is hostile: it may hold the marks that fence it, headings that pretend to be another document, or the
control tokens of chat templates, which servers read as such inside a message too and which could end it. The fence is
chosen so that no passage holds it; false headings and control tokens are written with other brackets; all else stays.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from pyrag.trace.model import Passage

_HEADING = re.compile(r"(\n[^\S\n]*+)\[(Doc(?:ument)?\s*\d+)\]", re.IGNORECASE)
# Of ChatML, Llama 3, gpt-oss, DeepSeek; of Gemma, Llama 2 and Mistral.
_CONTROL_TOKEN = re.compile(
    r"<([|｜][^<>\n]{1,40}[|｜])>|<(/?(?:s|bos|eos|(?:start|end)_of_turn))>|<<(/?SYS)>>"
    r"|\[(/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\]"
)


def fenced_passages(passages: Sequence[Passage]) -> tuple[str, str]:
    """A fence that none of the passages holds, and the passages as `[Doc 1]`, `[Doc 2]`, …"""
    documents = "\n\n".join(f"[Doc {number}]{_written(passage)}" for number, passage in enumerate(passages, start=1))
    folded = documents.casefold()
    names = itertools.chain(["documents"], (f"documents-{i}" for i in itertools.count(2)))
    fence = next(name for name in names if f"{name}>" not in folded)
    return fence, documents


def numbered(sub_queries: Sequence[str]) -> str:
    return "\n".join(f"{number}. {query}" for number, query in enumerate(sub_queries, start=1))


def given(facts: str, question: str) -> str:
    """Return a query for the Answer agent's aggregation mode, which the embedded reader takes apart again.

    Args:
        facts: Earlier answers, each behind its question.
        question: What the answer is to be concluded for.
    """
    return f"Given: {facts}. Answer the question: {question}"


def _written(passage: Passage) -> str:
    """A passage from the end of the line above it on, since a heading begins behind one."""
    title, text = passage.title.strip(), passage.text.strip()
    whole = text if not title or text.startswith(title) else f"{title}\n{text}"
    shown = f"\n{whole}"
    if "[" not in shown and "<" not in shown:
        return shown
    return _CONTROL_TOKEN.sub(lambda found: f"({found[found.lastindex or 0]})", _HEADING.sub(r"\1(\2)", shown))
