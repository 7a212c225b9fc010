"""The agent roles. An engine is a set of agents; an LLM implements them by prompts, the embedded engine by code.

Agents hold no state of a question: all they need is passed in, so one set serves many questions at once. They
raise `pyrag.errors.ServiceError` where their model cannot be used and `BadOutputError` where it cannot be made to
reply in form; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyrag.methods.hera.coach.protocol import Coach
from pyrag.methods.hera.topology import Characterisation, Topology
from pyrag.trace.model import Goal, Passage, Usage


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Atomic sub-queries, each answerable by one retrieval. `note` says why where a fallback was taken."""

    sub_queries: tuple[str, ...]
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()  # the model's replies, bad ones included
    note: str = ""
    fallback: bool = False  # no reply held usable sub-queries: the question stands for them


@dataclass(frozen=True, slots=True)
class Plan:
    """A program. `sub_queries` is set where the planner wrote them in the same call (joint mode)."""

    source: str
    usage: Usage = Usage()
    sub_queries: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class GoalPlan:
    """Sub-goals in order, the last one giving the answer; they keep the rules of `parsing_goals`.

    `warnings` say what of the reply was left out or assumed.
    """

    goals: tuple[Goal, ...]
    rationale: str = ""
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply held a plan that can run: the question is its only goal


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer. `citations` are positions in the passages given, counted from 0; `known` False means unknown.

    `missing` is the kind of information that the passages lack, from answerers that say so; `note` what the user is to
    know about how the answer came about.
    """

    text: str
    known: bool
    citations: tuple[int, ...] = ()
    rationale: str = ""
    confidence: float | None = None
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    missing: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Another query for a step whose search did not bring its evidence; `strategy` says what was changed."""

    query: str
    keywords: tuple[str, ...] = ()
    strategy: str = ""
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """Free text. What it means is for the method that asked; `cut_off` says that it may lack its end."""

    text: str
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The passages that bear on a query, by position counted from 0, best first."""

    positions: tuple[int, ...]
    rationale: str = ""
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether passages suffice to answer a query; `missing` says what they lack."""

    sufficient: bool
    missing: str = ""
    rationale: str = ""
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Reflection:
    """Whether an answer stands; `critique` says what is wrong with it."""

    accepted: bool
    critique: str = ""
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Characterised:
    """What kind of question it is, and what finding out cost."""

    profile: Characterisation
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Orchestration:
    """A topology that keeps the rules of `parsing_topology`.

    `note` says why where a fallback was taken, `warnings` what of the reply was left out or assumed.
    """

    topology: Topology
    usage: Usage = Usage()
    raw: tuple[str, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()
    fallback: bool = False  # no reply held a topology that can run: one search and one answer


class Decomposer(Protocol):
    async def decompose(self, question: str) -> Decomposition: ...


class Planner(Protocol):
    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """A program for the question; `sub_queries=None` asks for sub-queries and program in one go (joint)."""
        ...

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        """A corrected program. `error` is a traceback, a refusal of the sandbox or a failed plan check."""
        ...


class DraftingPlanner(Planner, Protocol):
    """A planner that takes its time and can show a program while it writes it. Not every planner can: look for the
    method."""

    def drafting(self, on_draft: Callable[[str], None]) -> Planner:
        """A planner that does the same, and calls `on_draft` with how each program begins as soon as further statements
        of it are finished."""
        ...


class GoalPlanner(Protocol):
    async def plan(self, question: str) -> GoalPlan:
        """Sub-goals of the question; one that a single search settles stays a single goal."""
        ...

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Another plan after one that did not run to an answer. Raises `BadOutputError` where there is none left."""
        ...


class Answerer(Protocol):
    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Evidence mode; with `passages=None` aggregation mode, where `query` holds the facts."""
        ...


class Rewriter(Protocol):
    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Another search query for what `query` asks. `tried` were searched for and brought `passages`, in which
        `missing` was not found."""
        ...


class Selector(Protocol):
    async def select(self, query: str, passages: Sequence[Passage]) -> Selection: ...


class Validator(Protocol):
    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation: ...


class Reflector(Protocol):
    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Reviews an answer to a query; `passages` is what it was drawn from, empty where that were earlier answers."""
        ...


class Lesson(Protocol):
    """What an orchestrator needs of an entry of the experience library."""

    @property
    def id(self) -> int: ...

    @property
    def insight(self) -> str: ...


class Orchestrator(Protocol):
    async def characterise(self, question: str) -> Characterised: ...

    async def orchestrate(self, question: str, experience: Sequence[Lesson], sample: int = 0) -> Orchestration:
        """A complete topology. Samples above 0 are others than the best guess, for comparing groups."""
        ...

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Another topology after one that did not run to an answer. Raises `BadOutputError` where none is left."""
        ...


# What is wrong with a text, empty where nothing is.
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
            prefix: Text that the model is taken to have written already, and goes on from.
            fault: What is wrong with a text, empty where nothing is. One with a fault is asked for once more.
        """
        ...


@dataclass(frozen=True, slots=True)
class Team:
    """HERA's agents and their orchestrator. `concluder` answers from facts in its query, or from passages."""

    orchestrator: Orchestrator
    decomposer: Decomposer
    answerer: Answerer
    rewriter: Rewriter
    selector: Selector
    validator: Validator
    reflector: Reflector
    concluder: Answerer


@dataclass(frozen=True, slots=True)
class Agents:
    """One engine, ready for use. `name` is what traces and the command line show. Engines without a language model
    have no `writer`. An `analyst` is an answerer that also judges whether the evidence suffices; one with a method
    `about(question)` is told the user's question, beside the queries that lead to it. Without one, the answerer reads.
    """

    name: str
    decomposer: Decomposer
    planner: Planner
    answerer: Answerer
    writer: Writer | None = None
    goal_planner: GoalPlanner | None = None
    analyst: Answerer | None = None
    rewriter: Rewriter | None = None
    team: Team | None = None
    coach: Coach | None = None
