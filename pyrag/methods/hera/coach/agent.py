"""Coach over a chat model: a system message, and a template, a schema and a parser for each of its tasks.

Its replies end up in a library or in prompts, so they are limited to lines of a maximum length.
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
MAX_INSIGHTS = 3  # insights of a comparison
MAX_LINES = 4  # rules or principles of a reply
MAX_LINE = 300  # characters of a rule or principle


@dataclass(frozen=True, slots=True)
class LLMCoach(PromptedAgent):
    """Coach as specified by `pyrag.methods.hera.coach.protocol.Coach`. Its advice concerns its current prompts."""

    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return insights from comparing a group's trajectories, at most `MAX_INSIGHTS`.

        Args:
            profile: The kind of question.
            group: Trajectories of that question.
        """
        kind = f"{profile.type}, {profile.difficulty}" + (f", asking for: {profile.asks}" if profile.asks else "")
        values = {
            "profile": kind,
            "group": _listed([trajectory.text for trajectory in group]),
            "most": str(MAX_INSIGHTS),
        }
        return await self._ask("reflect", values, INSIGHTS, parse_insights)

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Return the model's decision about a new insight. The entries are shown with ids and success counts.

        Args:
            insight: The new insight.
            entries: Similar entries of the library.
        """
        shown = "\n".join(
            f"{entry.id}: {entry.insight} (helped {entry.utility} of {entry.uses} times)" for entry in entries
        )
        known = [entry.id for entry in entries]
        values = {"entries": shown, "insight": insight}
        return await self._ask("settle", values, SETTLEMENT, lambda reply: parse_settlement(reply, known))

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return the agents that caused a failure, at most two; empty if none did.

        Args:
            trajectory: What happened, as text.
            agents: Agents that took part.
        """
        values = {"trajectory": trajectory, "agents": ", ".join(agents)}
        return await self._ask("blame", values, BLAME, lambda reply: parse_blame(reply, agents))

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return at most `MAX_LINES` additional rules that change an agent along an axis (`evolve.axis.AXIS`).

        Args:
            agent: The agent.
            axis: The direction of the change.
            failures: Trajectories in which the agent failed, as text.
        """
        about = self.prompts.notice(f"evolve.axis.{axis}")
        values = {**self._values_of(agent), "failures": _listed(failures), "axis": about, "most": str(MAX_LINES)}
        return await self._ask("vary", values, RULES, parse_rules)

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return at most `MAX_LINES` rules and as many principles.

        Args:
            agent: The agent.
            failures: Trajectories in which the agent failed, as text.
            results: Results of the agent's variants, best first.
        """
        values = {**self._values_of(agent), "failures": _listed(failures), "results": _listed(results)}
        return await self._ask("distil", {**values, "most": str(MAX_LINES)}, GUIDANCE, parse_guidance)

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the guidance in no more lines than before. The caller must check its length.

        Args:
            agent: The agent.
            guidance: Guidance of the agent.
            characters: Maximum length of all lines together, as stated in the request.
        """
        values = {
            "agent": agent,
            "characters": str(characters),
            "rules": _listed(guidance.rules),
            "principles": _listed(guidance.principles),
        }
        limit = len(guidance.rules) + len(guidance.principles)
        return await self._ask("shorten", values, SHORTER, lambda reply: parse_guidance(reply, limit))

    def _values_of(self, agent: Agent) -> dict[str, str]:
        return {"agent": agent, "prompt": self.prompts.notice(f"hera.{agent}.system")}

    async def _ask(self, task: str, values: Mapping[str, str], schema: Schema, parse: Callable[[str], T]) -> T:
        talk = self.talk(f"evolve.{task}", values, schema, system="evolve")
        try:
            return await self.asked(talk, parse, "hera.retry", RETRIES)
        except ContextLengthError as error:  # repeated at every attempt, it would end learning for good
            raise BadOutputError(f"the prompt of the coach is too long: {error}", talk.usage) from error


def _listed(texts: Sequence[str]) -> str:
    return "\n\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)) or "(none)"


def parse_insights(text: str) -> tuple[str, ...]:
    return _lines(object_with(text, "insights"), "insights", MAX_INSIGHT)[:MAX_INSIGHTS]


def parse_settlement(text: str, known: Sequence[int]) -> Settlement:
    """Parse the decision about a new insight.

    Args:
        text: The reply.
        known: Ids of the entries shown; other numbers in the reply are ignored.

    Raises:
        BadOutputError: The reply is not in the required form, MERGE or PRUNE names no known entry, or MERGE has no text
            of at most `MAX_INSIGHT` characters.
    """
    value = object_with(text, "operation")
    word = line_of(value, "operation").upper()
    operation = next((candidate for candidate in OPERATIONS if candidate == word), None)
    if operation is None:
        raise BadOutputError(f'"operation" must be one of {", ".join(OPERATIONS)}, not {word[:40]!r}')
    listed = value.get("entries")
    numbers = numbers_of(listed) if isinstance(listed, list) else []
    entries = tuple(id_ for id_ in known if id_ in numbers)
    if operation in ("MERGE", "PRUNE") and not entries:
        raise BadOutputError(f'{operation} needs "entries", numbers among {", ".join(map(str, known))}')
    insight = one_line(loose_line_of(value, "insight"))
    if operation == "MERGE" and not 0 < len(insight) <= MAX_INSIGHT:
        raise BadOutputError(f'MERGE needs an "insight" of at most {MAX_INSIGHT} characters')
    return Settlement(operation, entries, insight)


def parse_blame(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return the first two agents that a reply blames; empty if it blames none.

    Args:
        text: The reply.
        agents: Agents that may be blamed.

    Raises:
        BadOutputError: The reply is not in the required form, or names an agent that may not be blamed.
    """
    value = object_with(text, "agents")
    named: dict[Agent, None] = {}
    for name in _texts(value, "agents"):
        agent = agent_named(name, agents)
        if agent is None:
            raise BadOutputError(f"{name[:40]!r} is not one of the agents {', '.join(agents)}")
        named[agent] = None
    return tuple(named)[:2]


def parse_rules(text: str) -> tuple[str, ...]:
    return _lines(object_with(text, "rules"), "rules", MAX_LINE)[:MAX_LINES]


def parse_guidance(text: str, limit: int = MAX_LINES) -> Guidance:
    """Parse rules, and principles if the reply has any.

    Args:
        text: The reply.
        limit: Maximum number of rules, and of principles; any others are dropped.

    Raises:
        BadOutputError: The reply has no rules, or a line of more than `MAX_LINE` characters.
    """
    value = object_with(text, "rules")
    rules = _lines(value, "rules", MAX_LINE)
    principles = _lines(value, "principles", MAX_LINE) if value.get("principles") else ()
    return Guidance(rules[:limit], principles[:limit])


def _lines(value: dict[str, Any], key: str, max_length: int) -> tuple[str, ...]:
    """Return the texts of a list, each on one line and without repetition. Raises `BadOutputError` for long texts."""
    lines = [one_line(text).lstrip("-•* ") for text in _texts(value, key)]
    if too_long := [line for line in lines if len(line) > max_length]:
        raise BadOutputError(f'"{key}" has a text of {len(too_long[0])} characters; at most {max_length} are allowed')
    return tuple(dict.fromkeys(line for line in lines if worded(line)))


def _texts(value: dict[str, Any], key: str) -> list[str]:
    content = value[key]
    if isinstance(content, str):
        return [line for line in lines_of(content) if line.strip()]
    if isinstance(content, bool | int | float) or content is None:
        raise BadOutputError(f'"{key}" must be a list of strings')
    return texts_of(content)
