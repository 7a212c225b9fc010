"""Unknown answers inside programs: what a program calls one, and what it is told when it uses one.

Programs test for unknown in words of their own ("N/A", "not found", "unable to determine"). Which of a program's texts
mean it is decided by `is_unknown`, before anything runs, and handed to the sandbox with each answer that was not found.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from pyrag.agents.parsing.answers import is_unknown
from pyrag_sandbox import Absent
from pyrag_sandbox.helpers import UnknownAnswerError

UNKNOWN_ERROR = UnknownAnswerError.__name__
_MAX_TEXT = 200  # characters; a longer text in a program is a prompt
_WORD = re.compile(r"[a-z/']+")
# Texts that say "nothing" where a program compares an answer with them. An answer of these words may be one.
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
    """True for a text that, as the end of a program, says that there is no answer ("None" is how Python writes it)."""
    return not text.strip() or text.strip().casefold() in ("none", "null") or is_unknown(text)


def _spells_unknown(text: str) -> bool:
    """True where comparing an answer with this text is a test for unknown."""
    return text.strip(" .!?-–—").casefold() in _NOTHING or is_no_answer(text)


def _hints_at_unknown(text: str) -> bool:
    """True where looking for this text in an answer is a search for a refusal."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return not _REFUSING.isdisjoint(words) and _REFUSING.union(_FILLING).issuperset(words)


def absent_answer(source: str, asked: str) -> Absent:
    """Marks of an unknown answer to the query `asked`, for the program with this source."""
    spellings, parts = _words_of(source)
    message = f"the answer to {asked!r} is unknown, so it cannot be compared or computed with"
    return Absent(spellings, parts, UNKNOWN_ERROR, f"{message}: test is_known(…) first, or find it another way")


@lru_cache(maxsize=256)
def _words_of(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of a program that mean unknown, and those that it may look for in a refusal."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return (), ()
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    short = sorted(text for text in texts if len(text) <= _MAX_TEXT)
    spellings = tuple(filter(_spells_unknown, short))
    return spellings, tuple(text for text in short if text.strip() and (text in spellings or _hints_at_unknown(text)))
