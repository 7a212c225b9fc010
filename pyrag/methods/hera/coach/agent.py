"""The coach over a chat model: one system message, a template, a schema and a parser for each of its tasks.

All of what it says ends up in a library or in prompts, so it is cut to lines of a length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.fields import line_of, loose_line_of, numbers_of, object_with, texts_of, worded
from pyrag.agents.prompted_agent import PromptedAgent
from pyrag.agents.schemas import Schema
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.methods.hera.coach.protocol import OPERATIONS, Axis, Guidance, Seen, Settlement
from pyrag.methods.hera.experience.entry import MAX_INSIGHT, Experience, one_line
from pyrag.methods.hera.schemas import BLAME, GUIDANCE, INSIGHTS, RULES, SETTLEMENT, SHORTER
from pyrag.methods.hera.team_replies import agent_named
from pyrag.methods.hera.topology import Agent, Characterisation

T = TypeVar("T")
RETRIES = 1
MAX_INSIGHTS = 3  # of one comparison
MAX_LINES = 4  # rules or principles of one reply
MAX_LINE = 300  # characters of a rule or principle


@dataclass(frozen=True, slots=True)
class LLMCoach(PromptedAgent):
    """See `pyrag.methods.hera.coach.protocol.Coach`. Its advice to an agent is about the prompts it was made with."""

    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return insights from comparing a group's trajectories, at most `MAX_INSIGHTS`.

        Args: those of `Coach.reflect`.
        """
        kind = f"{profile.type}, {profile.difficulty}" + (f", asking for: {profile.asks}" if profile.asks else "")
        values = {"profile": kind, "group": _listed([one.text for one in group]), "most": str(MAX_INSIGHTS)}
        return await self._say("reflect", values, INSIGHTS, parse_insights)

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Decide the fate of a new insight, entries shown with their ids and success counts.

        Args: those of `Coach.settle`.
        """
        shown = "\n".join(f"{one.id}: {one.insight} (helped {one.utility} of {one.uses} times)" for one in entries)
        known = [one.id for one in entries]
        values = {"entries": shown, "insight": insight}
        return await self._say("settle", values, SETTLEMENT, lambda reply: parse_settlement(reply, known))

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return the agents that caused a failure, at most two; empty for none. Args: those of `Coach.blame`."""
        values = {"trajectory": trajectory, "agents": ", ".join(agents)}
        return await self._say("blame", values, BLAME, lambda reply: parse_blame(reply, agents))

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return at most `MAX_LINES` additional rules along an axis, explained by `evolve.axis.AXIS`.

        Args: those of `Coach.vary`.
        """
        about = self.prompts.notice(f"evolve.axis.{axis}")
        values = {**self._told(agent), "failures": _listed(failures), "axis": about, "most": str(MAX_LINES)}
        return await self._say("vary", values, RULES, parse_rules)

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return at most `MAX_LINES` rules and as many principles. Args: those of `Coach.distil`."""
        values = {**self._told(agent), "failures": _listed(failures), "results": _listed(results)}
        return await self._say("distil", {**values, "most": str(MAX_LINES)}, GUIDANCE, parse_guidance)

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the guidance in no more lines than before; the length of the reply is not measured.

        Args: those of `Coach.shorten`.
        """
        values = {
            "agent": agent,
            "characters": str(characters),
            "rules": _listed(guidance.rules),
            "principles": _listed(guidance.principles),
        }
        most = len(guidance.rules) + len(guidance.principles)
        return await self._say("shorten", values, SHORTER, lambda reply: parse_guidance(reply, most))

    def _told(self, agent: Agent) -> dict[str, str]:
        return {"agent": agent, "prompt": self.prompts.notice(f"hera.{agent}.system")}

    async def _say(self, task: str, values: Mapping[str, str], schema: Schema, parse: Callable[[str], T]) -> T:
        talk = self.talk(f"evolve.{task}", values, schema, system="evolve")
        try:
            return await self.asked(talk, parse, "hera.retry", RETRIES)
        except ContextLengthError as error:  # it would be so at every attempt, and learning would end here for good
            raise BadOutputError(f"the coach was shown too much: {error}", talk.usage) from error


def _listed(texts: Sequence[str]) -> str:
    return "\n\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)) or "(none)"


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
        return [line for line in lines_of(said) if line.strip()]
    if isinstance(said, bool | int | float) or said is None:
        raise BadOutputError(f'"{key}" must be a list of strings')
    return texts_of(said)
