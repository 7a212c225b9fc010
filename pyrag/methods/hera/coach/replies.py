"""Parsers of a coach's replies. All of it ends up in a library or in prompts, so it is cut to lines of a length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrag.agents.parsing.fields import line_of, loose_line_of, numbers_of, object_with, texts_of, worded
from pyrag.errors import BadOutputError
from pyrag.methods.hera.coach.protocol import OPERATIONS, Guidance, Settlement
from pyrag.methods.hera.experience.entry import MAX_INSIGHT, one_line
from pyrag.methods.hera.team_replies import agent_named
from pyrag.methods.hera.topology import Agent

MAX_INSIGHTS = 3  # of one comparison
MAX_LINES = 4  # rules or principles of one reply
MAX_LINE = 300  # characters of a rule or principle


def parse_insights(text: str) -> tuple[str, ...]:
    return _lines(object_with(text, "insights"), "insights", MAX_INSIGHT)[:MAX_INSIGHTS]


def parse_settlement(text: str, known: Sequence[int]) -> Settlement:
    """Read the fate of a new insight.

    Args:
        text: The reply.
        known: Ids of the entries shown; other numbers in the reply are ignored.

    Raises:
        BadOutputError: the reply is out of form, MERGE or PRUNE names no known entry, or MERGE has no text of at most
            `MAX_INSIGHT` characters.
    """
    value = object_with(text, "operation")
    said = line_of(value, "operation").upper()
    operation = next((one for one in OPERATIONS if one == said), None)
    if operation is None:
        raise BadOutputError(f'"operation" must be one of {", ".join(OPERATIONS)}, not {said[:40]!r}')
    said_entries = value.get("entries")
    numbers = numbers_of(said_entries) if isinstance(said_entries, list) else []
    entries = tuple(one for one in known if one in numbers)
    if operation in ("MERGE", "PRUNE") and not entries:
        raise BadOutputError(f'{operation} needs "entries", numbers among {", ".join(map(str, known))}')
    insight = one_line(loose_line_of(value, "insight"))
    if operation == "MERGE" and not 0 < len(insight) <= MAX_INSIGHT:
        raise BadOutputError(f'MERGE needs an "insight" of at most {MAX_INSIGHT} characters')
    return Settlement(operation, entries, insight)


def parse_blame(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return the first two agents that a reply blames; empty where it blames none.

    Args:
        text: The reply.
        agents: Those that may be blamed.

    Raises:
        BadOutputError: the reply is out of form, or names another agent.
    """
    value = object_with(text, "agents")
    named: dict[Agent, None] = {}
    for said in _texts(value, "agents"):
        agent = agent_named(said, agents)
        if agent is None:
            raise BadOutputError(f"{said[:40]!r} is none of the agents {', '.join(agents)}")
        named[agent] = None
    return tuple(named)[:2]


def parse_rules(text: str) -> tuple[str, ...]:
    return _lines(object_with(text, "rules"), "rules", MAX_LINE)[:MAX_LINES]


def parse_guidance(text: str, most: int = MAX_LINES) -> Guidance:
    """Read rules, and principles where there are any.

    Args:
        text: The reply.
        most: Maximum number of rules, and of principles; further ones are dropped.

    Raises:
        BadOutputError: the reply has no rules, or a line of more than `MAX_LINE` characters.
    """
    value = object_with(text, "rules")
    rules = _lines(value, "rules", MAX_LINE)
    principles = _lines(value, "principles", MAX_LINE) if value.get("principles") else ()
    return Guidance(rules[:most], principles[:most])


def _lines(value: dict[str, Any], key: str, longest: int) -> tuple[str, ...]:
    """The texts of a list, each on one line and once. Raises `BadOutputError` where one is too long."""
    lines = [one_line(text).lstrip("-•* ") for text in _texts(value, key)]
    if too_long := [line for line in lines if len(line) > longest]:
        raise BadOutputError(f'"{key}" has a text of {len(too_long[0])} characters; {longest} are the most allowed')
    return tuple(dict.fromkeys(line for line in lines if worded(line)))


def _texts(value: dict[str, Any], key: str) -> list[str]:
    said = value[key]
    if isinstance(said, str):
        return [line for line in said.splitlines() if line.strip()]
    if isinstance(said, bool | int | float) or said is None:
        raise BadOutputError(f'"{key}" must be a list of strings')
    return texts_of(said)
