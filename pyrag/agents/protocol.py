"""The agent roles. An engine is a set of agents; an LLM implements them by prompts, the embedded engine by code.

Agents hold no state of a question: all they need is passed in, so one set serves many questions at once. They
raise `pyrag.errors.ServiceError` where their model cannot be used and `BadOutputError` where it cannot be made to
reply in form; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from pyrag.llm.protocol import Message
from pyrag.trace.model import Passage, Usage

T = TypeVar("T")

MAX_TURNS = 20
"""Maximum number of earlier messages that a Standalone Agent reads: the last ones."""

MAX_TURN = 4000
"""Maximum number of characters of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """A reply of an agent: what it cost, and how it came about.

    Attributes:
        usage: The model calls and tokens behind it, those of bad replies included.
        raw: The model's replies as it wrote them, bad ones included.
        note: Why a fallback was taken, or anything else that the user is to know.
        doubt: The note casts doubt on the answer, and is of no use beside a confident one.
    """

    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Decomposition(AgentReply):
    """Atomic sub-queries, each answerable by one retrieval."""

    sub_queries: tuple[str, ...]
    fallback: bool = False  # no reply held usable sub-queries: the question stands for them


@dataclass(frozen=True, slots=True)
class Plan(AgentReply):
    """A program. `sub_queries` is set where the planner wrote them in the same call (joint mode)."""

    source: str
    sub_queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading(AgentReply):
    """An answer. `citations` are positions in the passages given, counted from 0; `known` False means unknown.

    `missing` is the kind of information that the passages lack, from answerers that say so.
    """

    text: str
    known: bool
    citations: tuple[int, ...] = ()
    rationale: str = ""
    confidence: float | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten(AgentReply):
    """Another query for a step whose search did not bring its evidence; `strategy` says what was changed."""

    query: str
    keywords: tuple[str, ...] = ()
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Written(AgentReply):
    """Free text. What it means is for the method that asked; `cut_off` says that it may lack its end."""

    text: str
    cut_off: bool = False


class Decomposer(Protocol):
    async def decompose(self, question: str) -> Decomposition: ...


class Planner(Protocol):
    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """Return a program.

        Args:
            question: The user's question.
            sub_queries: Those of the Decompose agent; None asks for sub-queries and program in one call (joint).
        """
        ...

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        """Return a corrected program.

        Args:
            question: The user's question.
            sub_queries: Those of the question.
            source: The program that failed.
            error: A traceback, a refusal of the sandbox or a failed plan check.
        """
        ...


class DraftingPlanner(Planner, Protocol):
    """A planner that can show a program while it writes it."""

    def drafting(self, on_draft: Callable[[str], None], on_text: Callable[[str], None]) -> Planner:
        """Return this planner, showing its programs while it writes them.

        Args:
            on_draft: Called with the beginning of a program whenever more statements that work are finished.
            on_text: Called with the lines of a program whenever there are more of them, finished or not.
        """
        ...


class ToolPlanner(Planner, Protocol):
    """A planner whose programs may call the caller's own functions."""

    def with_tools(self, tools: str) -> Planner:
        """Return this planner, told of these functions: their signatures and descriptions, as text for a prompt."""


class SizedPlanner(Planner, Protocol):
    """A planner that writes the number of passages into its programs."""

    def with_topk(self, topk: int) -> Planner:
        """Return this planner with another number of passages for each search, from 1 to 100."""


class Answerer(Protocol):
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer, which may be unknown.

        Args:
            query: What is asked.
            passages: The evidence; None for aggregation mode, where `query` holds the facts.
        """
        ...


class Rewriter(Protocol):
    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return another search query.

        Args:
            query: What is asked.
            tried: The queries searched for so far.
            passages: Those that were found.
            missing: The information that they lack.
        """
        ...


@dataclass(frozen=True, slots=True)
class Standalone(AgentReply):
    """A question that can be understood without the conversation before it."""

    question: str


class FollowUpAgent(Protocol):
    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Return the last question of a conversation as one of its own.

        Args:
            earlier: The messages before it, the oldest first.
            question: The last message.
        """
        ...


# Returns the fault of a text, or an empty text.
FindFault = Callable[[str], str]


class Writer(Protocol):
    async def write(
        self,
        template: str,
        values: Mapping[str, str],
        stop: tuple[str, ...] = (),
        prefix: str = "",
        fault: FindFault | None = None,
    ) -> Written:
        """Have a language model write after a prompt template.

        Args:
            template: Name of the template.
            values: Texts for its placeholders.
            stop: Strings that end the text and are left out.
            prefix: Beginning of the text, which the model continues.
            fault: Returns the fault of a text, or an empty text. A text with a fault is asked for once more.
        """
        ...


@dataclass(frozen=True, slots=True)
class RoleEngines:
    """The engine of each role, which methods with agents of their own build them from: a `PromptedEngine`, an
    `EmbeddedEngine`, or an object of somebody else's that a method may know."""

    answer: Any
    plan: Any
    decompose: Any
    rewrite: Any


@dataclass(frozen=True, slots=True)
class Agents:
    """One engine, ready for use.

    Attributes:
        name: The engine as traces and the command line show it.
        writer: Writes free text; None without a language model.
        rewriter: Writes another query for a failed one; None where the engine has none.
        follow_up: Makes the last question of a conversation one of its own; None where the engine has none.
        engines: What `team` builds from; None where nothing can be built.
        teams: Agents of single methods, by the function that builds them.
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

    def team(self, build: Callable[[RoleEngines], T | None]) -> T | None:
        """Return the agents that a method has beside these, built at its first call; None where the engine has none."""
        if build not in self.teams and self.engines is not None:
            self.teams[build] = build(self.engines)
        found: T | None = self.teams.get(build)
        return found

    def with_team(self, build: Callable[[RoleEngines], T | None], team: T) -> Agents:
        """Return these agents with a team given for a method.

        Args:
            build: The function that would build the method's team.
            team: The team to use instead.
        """
        return replace(self, teams={**self.teams, build: team})
