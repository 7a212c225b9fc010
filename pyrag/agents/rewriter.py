"""Rewrite Agent over a language model: its prompt, its schema and the parser of its replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.answer_places import is_form
from pyrag.agents.parsing.fields import loose_line_of, object_with, texts_of, worded
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.agents.passages import fenced_passages, numbered
from pyrag.agents.prompted_agent import PromptedAgent
from pyrag.agents.protocol import Rewritten
from pyrag.agents.schemas import REWRITE
from pyrag.errors import BadOutputError
from pyrag.trace.model import Passage
from pyrag_helpers.unknown import is_unknown

RETRIES = 1
_MAX_QUERY = 500  # characters
_MIN_WORDS, _MAX_WORDS = 3, 25  # words of a reply that may be only a query
_SPEAKING = frozenset(
    ("i", "i'm", "i’m", "sorry", "unfortunately", "please", "here", "the", "let", "to", "we", "sure", "my")
)
_QUOTED = re.compile(r"\A[`\"“'](.{1,500})[`\"”']\Z")
_LABEL = re.compile(
    r"\A[\s*_#>-]{0,8}(?:(?:re-?written|new|search|refined)\s)?query[*_]{0,2}\s?[:：]\s?[*_]{0,2}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LLMRewriter(PromptedAgent):
    """Rewrite Agent: turns a failed query, its passages and the missing information into another query."""

    template: str = "rewrite"
    retry: str = "rewrite.retry"

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return another search query.

        Args:
            query: Query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
        """
        fence, documents = fenced_passages(passages)
        values = {
            "query": query,
            "tried": numbered(tried),
            "documents": documents,
            "fence": fence,
            "missing": missing or "not said",
        }
        talk = self.talk(self.template, values, REWRITE)
        try:
            new, keywords, strategy = await self.asked(talk, parse_rewrite, self.retry, RETRIES)
        except BadOutputError:
            new, keywords, strategy = next(filter(None, map(salvage_rewrite, reversed(talk.whole))), ""), (), ""
            if not new:
                raise
        return Rewritten(new, keywords, strategy, usage=talk.usage, raw=talk.raw, note=talk.note)


def parse_rewrite(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return the query, keywords and strategy of a reply. Raises `BadOutputError` if it is malformed."""
    try:
        value = object_with(text, "query")
    except BadOutputError:
        value = {"query": _bare_query(text)}
        if not value["query"]:
            raise
    query = worded(_query_of(value["query"]))
    if not query:
        raise BadOutputError('"query" is empty')
    if len(query) > _MAX_QUERY:
        raise BadOutputError(f"the query has {len(query)} characters; at most {_MAX_QUERY} are allowed")
    if is_form(query):
        raise BadOutputError("it repeats the form and contains no query")
    return query, tuple(texts_of(value.get("keywords"))), loose_line_of(value, "strategy")


def salvage_rewrite(text: str) -> str:
    """Return a reply that consists of one line of search terms; otherwise an empty text."""
    lines = [line.strip(' *`"“”') for line in lines_of(split_thinking(text, "(?!)")[1]) if line.strip()]
    line = lines[0] if len(lines) == 1 else ""
    words = line.split()
    plain = _MIN_WORDS <= len(words) <= _MAX_WORDS and not line.startswith(("{", "[", "<")) and not is_form(line)
    return line if plain and words and words[0].casefold().strip(",") not in _SPEAKING and not is_unknown(line) else ""


def _query_of(value: Any) -> str:
    """Return a query, or the first of several."""
    if isinstance(value, list):
        value = next((item for item in value if item), "")
    if isinstance(value, dict):
        value = next((value[key] for key in ("query", "text", "q") if key in value), next(iter(value.values()), ""))
    return " ".join(value.split()) if isinstance(value, str) else ""


def _bare_query(text: str) -> str:
    """Return a query in quotes or after a label; empty if the reply may be anything else."""
    lines = [line.strip() for line in lines_of(split_thinking(text, r"(?i)\bquery\s?[:：]")[1]) if line.strip()]
    labelled = [line[label.end() :] for line in lines if (label := _LABEL.match(line))]
    line = labelled[-1] if labelled else lines[0] if len(lines) == 1 else ""
    quoted = _QUOTED.match(line.strip("* "))
    return quoted[1] if quoted else line.strip("*` ") if labelled else ""
