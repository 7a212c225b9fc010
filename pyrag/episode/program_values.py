"""Values passed between programs and primitives.

Arguments are checked as Python would check them, with errors worded for the program's author. Passages become records,
answers become texts, and variables become JSON.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from pyrag.agents.parsing.answers import is_unknown
from pyrag.errors import FilterError
from pyrag.retrieval.filters.language import filter_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import check_filters
from pyrag.trace.model import Answer, Passage
from pyrag.trace.plain import jsonable
from pyrag_helpers.known import UnknownAnswerError
from pyrag_sandbox import Absent, PrimitiveError, Record, Text


def answer_text(answer: Answer, asked: str, source: str) -> Text:
    """Return an answer as a program sees it.

    Args:
        answer: The answer.
        asked: Query that the answer belongs to.
        source: Source code of the program; its texts determine what an unknown answer compares equal to.
    """
    fields = {"known": answer.known, "citations": list(answer.citations), "confidence": answer.confidence}
    return Text(answer.text, fields, None if answer.known else absent_answer(source, asked))


def record(passage: Passage) -> Record:
    """Return a passage as programs see it: `doc.text`, `doc["title"]`."""
    fields = {"id": passage.id, "title": passage.title, "text": passage.text, "score": passage.score}
    return Record(fields)


def is_passage(value: Record) -> bool:
    """Return True for a passage, False for a record of another kind."""
    return "id" in value.fields and "text" in value.fields


def plain(value: Any) -> Any:
    """Return a program's value as JSON, in the forms of `pyrag.trace.plain`."""
    if type(value) is list and all(type(item) is Record and is_passage(item) for item in value):
        return [{"passage": jsonable(item.fields["id"])} for item in value]
    return jsonable(_without_handles(value))


def _without_handles(value: Any) -> Any:
    """Return a value with texts and objects in place of answers and passages."""
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Record):
        if is_passage(value):
            return {"passage": value.fields["id"]}
        return {name: _without_handles(item) for name, item in value.fields.items()}
    if isinstance(value, list | tuple):
        return [_without_handles(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_handles(item) for key, item in value.items()}
    return value


UNKNOWN_ERROR = UnknownAnswerError.__name__
T = TypeVar("T")
_MAX_TEXT = 200  # characters; a longer text in a program is a prompt
_WORD = re.compile(r"[a-z/']+")
# Texts that mean "nothing" if a program compares an answer with them. A real answer may consist of these words.
_NOTHING = frozenset(("none", "null", "nil", "nan", "na", "n.a.", "nothing", "missing", "empty", "undefined", "error"))
# Words that refusals consist of: a program that looks for some of them in an answer looks for a refusal.
_REFUSING = frozenset((
    "unknown", "not", "cannot", "can't", "couldn't", "don't", "doesn't", "isn't", "wasn't", "unable", "insufficient",
    "unclear", "unspecified", "undetermined", "unavailable", "n/a", "none", "sorry", "enough", "know", "known", "find",
    "found", "mention", "mentions", "mentioned", "specify", "specifies", "specified", "state", "states", "stated",
    "provide", "provides", "provided", "contain", "contains", "contained", "say", "says", "indicate", "indicated",
    "available", "give", "given", "determine", "determined", "answer", "answered", "answerable", "possible", "sure",
    "information", "evidence", "info", "data", "context", "document", "documents", "passage", "passages", "text",
))  # fmt: skip
_FILLING = frozenset((
    "i", "do", "does", "did", "was", "were", "is", "are", "be", "could", "the", "a", "an", "no", "any", "in", "to",
    "of", "it", "this", "there",
))  # fmt: skip


def is_no_answer(text: str) -> bool:
    """Return True if a program whose result is this text gives no answer ("None" is Python's own text for it)."""
    return not text.strip() or text.strip().casefold() in ("none", "null") or is_unknown(text)


def _spells_unknown(text: str) -> bool:
    """Return True if a comparison with this text tests whether an answer is unknown."""
    return text.strip(" .!?-–—").casefold() in _NOTHING or is_no_answer(text)


def _hints_at_unknown(text: str) -> bool:
    """Return True if searching an answer for this text tests whether it is a refusal."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return not _REFUSING.isdisjoint(words) and _REFUSING.union(_FILLING).issuperset(words)


def absent_answer(source: str, asked: str) -> Absent:
    """Return the marks of an unknown answer.

    Args:
        source: Source code of the program that receives the answer.
        asked: Query that has no answer.
    """
    spellings, parts = _words_of(source)
    message = f"the answer to {asked!r} is unknown, so it cannot be compared or computed with"
    return Absent(spellings, parts, UNKNOWN_ERROR, f"{message}: test is_known(…) first, or find it another way")


@lru_cache(maxsize=256)
def _words_of(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the texts of a program that mean "unknown", and the texts that it may search for in a refusal."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return (), ()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    short = sorted(text for text in texts if len(text) <= _MAX_TEXT)
    spellings = tuple(filter(_spells_unknown, short))
    return spellings, tuple(text for text in short if text.strip() and (text in spellings or _hints_at_unknown(text)))


MAX_TOPK = 100
MAX_QUERY_BYTES = 8 * 1024


def check_query(query: Any, name: str) -> str:
    """Return a primitive's query as plain text.

    Args:
        query: The program's argument: a str, or a `Text` from an earlier answer.
        name: Name of the primitive, for errors.

    Raises:
        PrimitiveError: The query is not a text, is blank or has more than `MAX_QUERY_BYTES` bytes.
    """
    text = query.text if isinstance(query, Text) else query
    if not isinstance(text, str):
        raise PrimitiveError(f"{name}() needs a query of type str, not {kind_of(query)}", "TypeError")
    if not text.strip():
        raise PrimitiveError(f"{name}() needs a query that is not empty", "ValueError")
    if len(text.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        raise PrimitiveError(f"{name}() takes a query of at most {MAX_QUERY_BYTES} bytes", "ValueError")
    return text


def check_topk(topk: Any) -> int:
    if isinstance(topk, bool) or not isinstance(topk, int):
        raise PrimitiveError(f"topk must be a whole number, not {kind_of(topk)}", "TypeError")
    if not 1 <= topk <= MAX_TOPK:
        raise PrimitiveError(f"topk must be between 1 and {MAX_TOPK}, not {topk}", "ValueError")
    return topk


def check_where(where: Any, retriever: object) -> Filter:
    """Parse a program's filter.

    Args:
        where: The filter as a str or dict.
        retriever: Retriever that will search with it.

    Raises:
        PrimitiveError: The value is not a filter, or the retriever does not support filters.
    """
    value = plain(where)
    if not isinstance(value, str | dict):
        raise PrimitiveError(f"where must be a filter as a str or dict, not {kind_of(where)}", "TypeError")
    try:
        check_filters(retriever)
        narrowed = filter_of(value)
    except FilterError as error:
        raise PrimitiveError(str(error), "ValueError") from None
    assert narrowed is not None
    return narrowed


def kind_of(value: Any) -> str:
    return "str" if isinstance(value, Text) else "a passage" if isinstance(value, Record) else type(value).__name__


@dataclass(frozen=True, slots=True)
class CallResults:
    """Texts and passages that calls returned. The sandbox gives the same objects back in the program's values."""

    _calls: dict[int, tuple[int, Any]] = field(default_factory=dict)  # the objects are kept, so their ids stay theirs

    def keep(self, call: int, values: list[T]) -> list[T]:
        """Record which call returned these values, and return them.

        Args:
            call: Id of the call.
            values: Objects that the program receives.
        """
        self._calls.update({id(value): (call, value) for value in values})
        return values

    def rows_of(self, calls: Collection[int]) -> list[Record]:
        """Return the rows that these calls of `each` returned."""
        returned = [value for call, value in self._calls.values() if call in calls and isinstance(value, Record)]
        return [record for record in returned if "item" in record.fields]

    def call_of(self, value: object) -> int | None:
        """Return the id of the call that returned this object; None for other objects."""
        call, known = self._calls.get(id(value), (None, None))
        return call if known is value else None
