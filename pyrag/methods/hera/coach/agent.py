"""The coach over a chat model: one system message, a template, a schema and a parser for each of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyrag.agents.prompted_agent import PromptedAgent
from pyrag.agents.schemas import Schema
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.methods.hera.coach.protocol import Axis, Guidance, Seen, Settlement
from pyrag.methods.hera.coach.replies import (
    MAX_INSIGHTS,
    MAX_LINES,
    parse_blame,
    parse_guidance,
    parse_insights,
    parse_rules,
    parse_settlement,
)
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.schemas import BLAME, GUIDANCE, INSIGHTS, RULES, SETTLEMENT, SHORTER
from pyrag.methods.hera.topology import Agent, Characterisation

T = TypeVar("T")
RETRIES = 1


@dataclass(frozen=True, slots=True)
class LLMCoach(PromptedAgent):
    """See `pyrag.methods.hera.coach.protocol.Coach`. Its advice to an agent is about the prompts it was made with."""

    async def reflect(self, profile: Characterisation, group: Sequence[Seen]) -> tuple[str, ...]:
        """Return insights from comparing a group's trajectories, at most `MAX_INSIGHTS`.

        Args:
            profile: The kind of the question.
            group: Trajectories of that question, shown as numbered texts.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
        """
        kind = f"{profile.type}, {profile.difficulty}" + (f", asking for: {profile.asks}" if profile.asks else "")
        values = {"profile": kind, "group": _listed([one.text for one in group]), "most": str(MAX_INSIGHTS)}
        return await self._say("reflect", values, INSIGHTS, parse_insights)

    async def settle(self, insight: str, entries: Sequence[Experience]) -> Settlement:
        """Decide the fate of a new insight.

        Args:
            insight: The new insight.
            entries: Entries like it, shown with their ids and success counts.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
        """
        shown = "\n".join(f"{one.id}: {one.insight} (helped {one.utility} of {one.uses} times)" for one in entries)
        known = [one.id for one in entries]
        values = {"entries": shown, "insight": insight}
        return await self._say("settle", values, SETTLEMENT, lambda reply: parse_settlement(reply, known))

    async def blame(self, trajectory: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
        """Return the agents that caused a failure, at most two; empty for none.

        Args:
            trajectory: The course of the run, as text.
            agents: Those that took part.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
        """
        values = {"trajectory": trajectory, "agents": ", ".join(agents)}
        return await self._say("blame", values, BLAME, lambda reply: parse_blame(reply, agents))

    async def vary(self, agent: Agent, axis: Axis, failures: Sequence[str]) -> tuple[str, ...]:
        """Return at most `MAX_LINES` additional rules that move an agent along an axis.

        Args:
            agent: The agent, shown with its system prompt.
            axis: The direction, explained by the template `evolve.axis.AXIS`.
            failures: Trajectories that it failed in, as text.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
        """
        about = self.prompts.notice(f"evolve.axis.{axis}")
        values = {**self._told(agent), "failures": _listed(failures), "axis": about, "most": str(MAX_LINES)}
        return await self._say("vary", values, RULES, parse_rules)

    async def distil(self, agent: Agent, failures: Sequence[str], results: Sequence[str]) -> Guidance:
        """Return at most `MAX_LINES` rules and as many principles.

        Args:
            agent: The agent, shown with its system prompt.
            failures: Trajectories that it failed in, as text.
            results: Outcomes of its variants, best first.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
        """
        values = {**self._told(agent), "failures": _listed(failures), "results": _listed(results)}
        return await self._say("distil", {**values, "most": str(MAX_LINES)}, GUIDANCE, parse_guidance)

    async def shorten(self, agent: Agent, guidance: Guidance, characters: int) -> Guidance:
        """Return the guidance rewritten in fewer characters, with no more lines than before.

        Args:
            agent: The agent.
            guidance: Its guidance.
            characters: Length asked of the model for all lines together; the reply is not measured.

        Raises:
            BadOutputError: the replies stayed out of form, or the request does not fit the model's window.
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
