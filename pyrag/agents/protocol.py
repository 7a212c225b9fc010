"""Agent roles. An engine is a set of agents, implemented by prompts (language models) or by code (the embedded engine).

Agents hold no state of a question, so one set serves many questions at once. They raise `pyrag.errors.ServiceError` if
their model cannot be used and `BadOutputError` if it gives no well-formed reply; they raise nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from pyrag.llm.protocol import Message
from pyrag.trace.model import Passage, Usage

T = TypeVar("T")

MAX_TURNS = 20
"""Maximum number of earlier messages that a Standalone Agent reads; older ones are left out."""

MAX_TURN = 4000
"""Maximum number of characters of each message that a Standalone Agent reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """Reply of an agent, with its cost and origin.

    Attributes:
        usage: Model calls and tokens, including the cost of bad replies.
        raw: The model's replies verbatim, including bad ones.
        note: Reason for a fallback, or anything else the user should know.
        doubt: Whether the note casts doubt on the answer; otherwise it is shown only with a weak or unknown answer.
    """

    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Decomposition(AgentReply):
    """Atomic sub-queries, each answerable by one retrieval.

    Attributes:
        fallback: True if no reply held usable sub-queries, so that the question replaces them.
    """

    sub_queries: tuple[str, ...]
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Plan(AgentReply):
    """Program of a planner. `sub_queries` is set if the planner wrote them in the same call (joint mode)."""

    source: str
    sub_queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading(AgentReply):
    """Answer of an agent.

    Attributes:
        known: False if the answer is unknown.
        citations: Positions in the passages, from 0.
        confidence: Chance that the answer is right, from 0 to 1; None if the answerer has no estimate. Confidences of
            several steps are multiplied.
        missing: Information that the passages lack, if the answerer reports it.
    """

    text: str
    known: bool
    citations: tuple[int, ...] = ()
    rationale: str = ""
    confidence: float | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten(AgentReply):
    """Rewritten query for a step whose search did not find the evidence; `strategy` describes the change."""

    query: str
    keywords: tuple[str, ...] = ()
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Written(AgentReply):
    """Free text, which the requesting method parses; `cut_off` is True if the text may be incomplete."""

    text: str
    cut_off: bool = False


class Decomposer(Protocol):
    """Agent that breaks a question into sub-queries."""

    async def decompose(self, question: str) -> Decomposition:
        """Return the sub-queries of a question."""
        ...


class Planner(Protocol):
    """Agent that writes programs."""

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """Return a program.

        Args:
            question: The user's question.
            sub_queries: The Decompose agent's sub-queries; None to write sub-queries and program in one call (joint
                mode).
        """
        ...

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        """Return a corrected program.

        Args:
            question: The user's question.
            sub_queries: Sub-queries of the question.
            source: Program that failed.
            error: Traceback, refusal of the sandbox or failed plan check.
        """
        ...


class Answerer(Protocol):
    """Agent that answers queries."""

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer, which may be unknown.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        ...


class Rewriter(Protocol):
    """Agent that rewrites search queries."""

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return another search query.

        Args:
            query: Query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
        """
        ...


@dataclass(frozen=True, slots=True)
class Standalone(AgentReply):
    """Question that can be understood without the conversation before it."""

    question: str


class FollowUpAgent(Protocol):
    """Agent that resolves the last question of a conversation."""

    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Rephrase the last question of a conversation so that it stands on its own.

        Args:
            earlier: Messages before the question, oldest first.
            question: The last message.
        """
        ...


# Returns the fault of a text, or an empty text.
FindFault = Callable[[str], str]


class Writer(Protocol):
    """Agent that writes free text."""

    async def write(
        self,
        template: str,
        values: Mapping[str, str],
        stop: tuple[str, ...] = (),
        prefix: str = "",
        fault: FindFault | None = None,
    ) -> Written:
        """Return text that a language model writes from a prompt template.

        Args:
            template: Name of the template.
            values: Texts for its placeholders.
            stop: Strings that end the text and are left out.
            prefix: Beginning of the text, which the model continues.
            fault: Returns the fault of a text, or an empty text. After a fault the model is asked once more.
        """
        ...


@dataclass(frozen=True, slots=True)
class RoleEngines:
    """Engine of each role, from which methods build agents of their own.

    Each is a `PromptedEngine`, a `RuleEngine`, or another object that a method knows how to use.
    """

    answer: Any
    plan: Any
    decompose: Any
    rewrite: Any


@dataclass(frozen=True, slots=True)
class Agents:
    """Agents of one engine, ready for use.

    Attributes:
        name: Name of the engine in traces and on the command line.
        writer: Agent that writes free text; None without a language model.
        rewriter: Agent that rewrites a failed query; None if the engine has none.
        follow_up: Agent that resolves follow-up questions; None if the engine has none.
        engines: Engines from which `team` builds agents; None if it cannot build any.
        teams: Agents that belong to one method, by the function that builds them.
        calls_model: Whether agents call a language model; without one, a question costs no model calls.
    """

    name: str
    decomposer: Decomposer
    planner: Planner
    answerer: Answerer
    writer: Writer | None = None
    rewriter: Rewriter | None = None
    engines: RoleEngines | None = None
    follow_up: FollowUpAgent | None = None
    teams: dict[Any, Any] = field(default_factory=dict, compare=False)
    calls_model: bool = True

    @property
    def can_write(self) -> bool:
        """True if the agents include a writer of free text."""
        return self.writer is not None

    @property
    def calls_tools(self) -> bool:
        """True if programs of the planner may call tools."""
        return hasattr(self.planner, "with_tools")

    def team(self, build: Callable[[RoleEngines], T | None]) -> T | None:
        """Return a method's own agents, built at the first call; None if the engine cannot provide them."""
        if build not in self.teams and self.engines is not None:
            self.teams[build] = build(self.engines)
        existing: T | None = self.teams.get(build)
        return existing

    def with_team(self, build: Callable[[RoleEngines], T | None], team: T) -> Agents:
        """Return these agents with a method's team replaced.

        Args:
            build: Function that would build the method's team.
            team: Team to use instead.
        """
        return replace(self, teams={**self.teams, build: team})


class PlanReply(Protocol):
    """Plan of an agent, with the agent's notes. Some plans also have `warnings`."""

    @property
    def note(self) -> str: ...
    @property
    def doubt(self) -> bool: ...
    @property
    def fallback(self) -> bool: ...
