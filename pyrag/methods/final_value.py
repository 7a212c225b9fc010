"""The value that a program ends with, read as an answer.

Programs end in an answer of `answer()`, in a text, number, date or boolean of their own, in a list, or in a dict with
the answer in it. A value that says in any way that nothing was found is unknown; one that holds documents is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyrag.episode.unknown_values import is_no_answer
from pyrag.trace.model import UNKNOWN, Answer
from pyrag_sandbox import Record, Text

_NOT_KNOWN = Answer(UNKNOWN, known=False)
_ANSWER_KEYS = ("final_answer", "final answer", "answer", "result", "value", "text", "output", "response")
_UNKNOWN_WORD = re.compile(rf"\b{UNKNOWN}\b", re.IGNORECASE)


class NoAnswerError(Exception):
    """A value that is no answer, in words for the program's author."""


def answer_of(value: Any) -> Answer:
    """The answer in a program's final value. Raises `NoAnswerError`."""
    match value:
        case None:
            return _NOT_KNOWN
        case Text():
            known = bool(value.fields.get("known", True))
            return Answer(value.text, known, (), value.fields.get("confidence"))
        case bool():
            return Answer("yes" if value else "no")
        case str():
            return _NOT_KNOWN if is_no_answer(value) else Answer(value.strip())
        case float():
            return Answer(str(int(value)) if value.is_integer() else str(value))
        case list() | tuple():
            return _of_several(value)
        case Mapping():
            return _of_dict(value)
        case Record():
            raise NoAnswerError("final_answer is a document: ask answer(query, docs) for the answer in it")
    return Answer(str(value))


def _of_several(values: Sequence[Any]) -> Answer:
    """All of them, or unknown if one is. A confidence, a flag or None beside a single text is no part of the answer."""
    texts = [one for one in values if isinstance(one, str | Text)]
    if len(texts) == 1 and all(one is texts[0] or _is_remark(one) for one in values):
        return answer_of(texts[0])
    answers = [answer_of(one) for one in values]
    if not answers or not all(one.known for one in answers):
        return _NOT_KNOWN
    return Answer(", ".join(one.text for one in answers))


def _is_remark(value: Any) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, float) and 0 <= value <= 1)


def _of_dict(values: Mapping[Any, Any]) -> Answer:
    """The entry that is named as the answer, or the only one; else all of them with their names."""
    named = {str(key).casefold().replace("_", " ").strip(): key for key in values}
    for key in _ANSWER_KEYS:
        if key.replace("_", " ") in named:
            return answer_of(values[named[key.replace("_", " ")]])
    if len(values) == 1:
        return answer_of(next(iter(values.values())))
    answers = {str(key): answer_of(one) for key, one in values.items()}
    if not answers or not all(one.known for one in answers.values()):
        return _NOT_KNOWN
    return Answer(", ".join(f"{key}: {one.text}" for key, one in answers.items()))


def holds_unknown(text: str) -> bool:
    """True for a text with the word "unknown" in it, which may be an unknown answer put into a longer text."""
    return _UNKNOWN_WORD.search(text) is not None
