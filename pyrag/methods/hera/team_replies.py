"""Parsers of the replies of HERA's agents, and of their words for agents, types and difficulties.

Each reply is a JSON object. Answers are parsed by `pyrag.agents.parsing.judgements`, rewritten queries by
`pyrag.agents.rewriter`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyrag.agents.parsing.fields import decision_of, loose_line_of, object_with, positions_of
from pyrag.agents.parsing.json_values import parse_json
from pyrag.agents.parsing.spellings import line
from pyrag.errors import BadOutputError
from pyrag.methods.hera.topology import DIFFICULTIES, QUESTION_TYPES, Agent, Characterisation, Difficulty, QuestionType

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The first pattern that matches decides.
_AGENTS: tuple[tuple[str, Agent], ...] = (
    (r"answer_?(?:valid|verif|check|review)|reflect|review|criti(?:c|que)", "reflect"),
    (r"decompos|question_split|query_split", "query_decomposer"),
    (r"rewrit|reformulat|query_(?:expan|generat)|paraphras", "query_rewriter"),
    (r"select|rerank|filter|evidence_extract", "evidence_selector"),
    (r"validat|verif|sufficien", "context_validator"),
    (r"conclu|^final|synthes|aggregat|combin|compar|summari|merg", "conclude"),
    (r"retriev|search|look_?up|fetch", "retriever"),
    (r"answer|reader|generat|^qa$|extract", "answer_generator"),
)
_TYPES: tuple[tuple[str, QuestionType], ...] = (
    (r"bridg", "bridge"),
    (r"compar|contrast", "comparison"),
    (r"intersect|common|shared|conjunct", "intersection"),
    (r"tempor|\bdates?\b|\btime\b|chronolog", "temporal"),
    (r"caus|\bwhy\b", "causal"),
    (r"ambig|vague|unclear", "ambiguous"),
    (r"single|simple|fact|direct|(?:one|1)[ -]?hop|look-?up", "single"),
    (r"multi|hop|chain|composit|sequential|nested", "bridge"),
)
_DIFFICULTIES: tuple[tuple[str, Difficulty], ...] = (
    (r"medium|moderate|intermediate|\bmid|average|normal|^2|two", "medium"),
    (r"easy|simple|low|trivial|basic|straightforward|^1|one", "easy"),
    (r"hard|difficult|complex|high|challeng|^[3-9]|three|four", "hard"),
)


def parse_selection(text: str, documents: int) -> tuple[tuple[int, ...], str]:
    """Parse the selection of passages.

    Args:
        text: The reply.
        documents: Number of passages shown; higher numbers are ignored.

    Returns:
        Positions of the passages, counted from 0, and the reason.

    Raises:
        BadOutputError: The reply is not in the required form.
    """
    value = _selection(text)
    content = value["documents"]
    positions = positions_of(content, documents)
    if not positions and not isinstance(content, list):
        raise BadOutputError(f'"documents" must be a list of numbers, not {repr(content)[:80]}')
    return positions, loose_line_of(value, "analysis")


def _selection(text: str) -> dict[str, Any]:
    """Return the object with the documents; a bare list is accepted too."""
    try:
        return object_with(text, "documents")
    except BadOutputError:
        for value in parse_json(text, "["):
            if isinstance(value, list) and positions_of(value, len(text)):
                return {"documents": value}
        raise


def parse_verdict(text: str, reason: str) -> tuple[bool, str, str]:
    """Parse a decision.

    Args:
        text: The reply.
        reason: Key of the reason for a NO. If it is missing, the analysis is used.

    Returns:
        The decision, the analysis, and the reason for a NO (empty for a YES).

    Raises:
        BadOutputError: The reply is not in the required form, or a NO has no reason.
    """
    value = object_with(text, "decision")
    good = decision_of(value["decision"])
    why = "" if good else loose_line_of(value, reason) or loose_line_of(value, "analysis")
    if not good and not why:
        raise BadOutputError(f'the decision is NO, but "{reason}" does not say why')
    return good, loose_line_of(value, "analysis"), why


def parse_profile(text: str) -> Characterisation:
    """Parse the kind of a question. Raises `BadOutputError` if the type is not one of the paper's."""
    value = object_with(text, "type")
    word = text_of(value, "type")
    if question_type(word) is None:
        raise BadOutputError(f'"type" must be one of {", ".join(QUESTION_TYPES)}, not {word[:40]!r}')
    return profile_of(value)[0]


def profile_of(
    value: Mapping[str, Any], otherwise: QuestionType = "single"
) -> tuple[Characterisation, tuple[str, ...]]:
    """Return the kind of question that an object describes, and warnings about unreadable parts.

    Args:
        value: An object with the keys "type", "difficulty" and "asks".
        otherwise: Type to use if the object has no valid one.
    """
    type_, hard = text_of(value, "type"), text_of(value, "difficulty")
    kind, level = question_type(type_), difficulty(hard)
    warnings = []
    if type_ and kind is None:
        warnings.append(
            f"the question type {type_[:40]!r} is not one of {', '.join(QUESTION_TYPES)}: {otherwise} is taken"
        )
    if hard and level is None:
        warnings.append(f"the difficulty {hard[:40]!r} is not one of {', '.join(DIFFICULTIES)}: medium is taken")
    asks = text_of(value, "asks").casefold()
    return Characterisation(kind or otherwise, level or "medium", asks), tuple(warnings)


def agent_named(name: str, known: Iterable[Agent]) -> Agent | None:
    """Return the agent that a name such as "Answer Generator", "answerer" or "answer-generator agent" stands for.

    Args:
        name: A name in any spelling.
        known: Agents that the name may stand for.

    Returns:
        The agent; None if the name stands for no known agent.
    """
    joined = re.sub(r"\W+", "_", _CAMEL.sub("_", name.strip()), flags=re.ASCII).casefold().strip("_")
    plain_name = joined.removeprefix("the_").removesuffix("_agent")
    among = tuple(known)
    if exact := next((agent for agent in among if agent == plain_name), None):
        return exact
    meant = next((agent for pattern, agent in _AGENTS if re.search(pattern, plain_name)), None)
    return meant if meant in among else None


def question_type(word: str) -> QuestionType | None:
    """Return the type of question that a word such as "multi-hop" stands for; None for an unknown word."""
    return next((kind for pattern, kind in _TYPES if re.search(pattern, word.casefold())), None)


def difficulty(word: str) -> Difficulty | None:
    """Return the difficulty that a word such as "moderate", or a number, stands for; None for an unknown word."""
    return next((level for pattern, level in _DIFFICULTIES if re.search(pattern, word.strip().casefold())), None)


def text_of(value: Mapping[str, object], key: str) -> str:
    """Return the value of a field on one line: a text, a number, or the first of a list; empty for anything else.

    Args:
        value: A JSON object.
        key: Name of the field, which may be missing.
    """
    content = value.get(key)
    if isinstance(content, list | tuple):
        content = next(iter(content), None)
    if isinstance(content, bool) or not isinstance(content, str | int | float):
        return ""
    return line(str(content))
