"""Trajectories: topologies for questions, and the scored execution of a question with a topology."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyrag.agents.prompts import Prompts
from pyrag.errors import BudgetExceededError, ConfigError, ContextLengthError, ServiceError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.metrics import score_text
from pyrag.evaluation.scoring import asked
from pyrag.llm.wrappers import Meter
from pyrag.methods.hera.coach.protocol import Coach
from pyrag.methods.hera.protocol import Lesson, Orchestrator
from pyrag.methods.hera.team import hera_team
from pyrag.methods.hera.topology import STATE, Characterisation, Topology
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import Trace

T = TypeVar("T")
# Kinds and causes of failures that a topology or prompt can cause. On any other failure, learning stops, to be
# continued once the fault is removed.
_OWN = frozenset({"program", "bad_output", "budget", "deadline", ContextLengthError.cause})


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Trajectory τ with its rewards: the answer's F1, and the tokens of all agents, including cached replies."""

    question: Question
    topology: Topology
    trace: Trace
    f1: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Players:
    """The agents with the prompts of `engines`. `version` is the prompts' number, or None for a variant.

    Methods raise `BudgetExceededError` if the meter refuses a call, and `ServiceError` if a model, retriever or the
    sandbox cannot be used.
    """

    engines: Engines
    settings: Settings
    meter: Meter
    prompts: Prompts
    version: int | None = None

    def with_prompts(self, prompts: Prompts, version: int | None = None) -> Players:
        """Return the same agents with other prompts.

        Args:
            prompts: The new prompts.
            version: Number of the prompts' version; None for a variant.
        """
        return replace(self, engines=self.engines.prompted(prompts), prompts=prompts, version=version)

    @property
    def coach(self) -> Coach | None:
        """Coach of the team; None for engines without a language model."""
        team = self.engines.agents.team(hera_team)
        return team.coach if team else None

    @property
    def orchestrator(self) -> Orchestrator:
        team = self.engines.agents.team(hera_team)
        if team is None:
            raise ConfigError(f"the engine {self.engines.agents.name} has no team of agents: name another with --llm")
        return team.orchestrator

    async def characterise(self, question: Question) -> Characterisation:
        return (await self.orchestrator.characterise(asked(question))).profile

    async def orchestrate(self, question: Question, lessons: Sequence[Lesson], sample: int = 0) -> Topology:
        """Return a sample of a topology, Γ ~ π_O(· | q, E_rel, N) (algorithm 4, line 9).

        Args:
            question: The question.
            lessons: Experience shown to the orchestrator.
            sample: 0 for the best topology; other samples are drawn at the paper's temperature.
        """
        return (await self.orchestrator.orchestrate(asked(question), lessons, sample)).topology

    async def revise(self, question: Question, topology: Topology, wish: str) -> Topology:
        """Return another topology for a question.

        Args:
            question: The question.
            topology: Topology to revise.
            wish: Description of the change.

        Raises:
            BadOutputError: The orchestrator returned no other topology.
        """
        return (await self.orchestrator.revise(asked(question), topology, wish)).topology

    async def run(self, question: Question, topology: Topology) -> Trajectory:
        """Execute a topology (algorithm 2, lines 5 to 7). If the topology or the prompts make it fail, its score is 0.

        Args:
            question: The question.
            topology: The topology.
        """
        trace = await answer_question(asked(question), self.engines, self.settings, extensions=STATE.plain(topology))
        if self.meter.refused:
            raise BudgetExceededError(trace.error.message if trace.error else "the budget is spent")
        if trace.error and not {trace.error.kind, trace.error.cause} & _OWN:
            raise ServiceError(trace.error.message)
        text = trace.answer.text if trace.answer.known else ""
        used = trace.usage
        tokens = used.prompt_tokens + used.completion_tokens + used.cached_tokens
        return Trajectory(question, STATE.read(trace) or topology, trace, score_text(text, question.answers)[1], tokens)

    async def run_all(self, question: Question, topologies: Iterable[Topology]) -> list[Trajectory]:
        """Execute topologies concurrently, and return their trajectories in order.

        Args:
            question: The question.
            topologies: Topologies for the question.
        """
        return await together((self.run(question, topology) for topology in topologies), self.settings.concurrency)


async def together(works: Iterable[Coroutine[Any, Any, T]], limit: int) -> list[T]:
    """Return the results of coroutines in order. The first error cancels the others and is raised.

    Args:
        works: The coroutines.
        limit: Maximum number of coroutines that run at the same time.
    """
    slots = asyncio.Semaphore(limit)

    async def limited(work: Coroutine[Any, Any, T]) -> T:
        try:
            async with slots:
                return await work
        finally:
            work.close()  # avoids a warning about a coroutine that was never awaited

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(limited(work)) for work in works]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]
