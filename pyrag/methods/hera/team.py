"""HERA's team over a chat model: an orchestrator and eight agents, with prompts `hera.AGENT` and typed results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyrag._io.lines import lines_of
from pyrag.agents.analyst import LLMAnalyst
from pyrag.agents.context_window import ContextWindow, WindowedAnswerer, WindowedRewriter
from pyrag.agents.goals.rules import RuleEngine
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.passages import fenced_passages, numbered
from pyrag.agents.prompted_agent import PromptedAgent, PromptedEngine
from pyrag.agents.protocol import Decomposition, RoleEngines
from pyrag.agents.rewriter import LLMRewriter
from pyrag.agents.schemas import SUB_QUERIES
from pyrag.errors import BadOutputError
from pyrag.methods.hera.coach.agent import LLMCoach
from pyrag.methods.hera.protocol import (
    Characterised,
    HeraTeam,
    Lesson,
    Orchestration,
    Reflection,
    Reflector,
    Selection,
    Selector,
    Validation,
    Validator,
)
from pyrag.methods.hera.schemas import DOCUMENTS, PROFILE, REVIEW, TOPOLOGY, VERDICT
from pyrag.methods.hera.team_replies import parse_profile, parse_selection, parse_verdict
from pyrag.methods.hera.topology import Agent, Characterisation, Node, Topology
from pyrag.methods.hera.topology_replies import read_topology, written_topology
from pyrag.trace.model import Passage

RETRIES = 2
TEMPERATURE = 0.9  # sampling temperature for the samples of a group (paper, §4)
_RETRY = "hera.retry"


@dataclass(frozen=True, slots=True)
class LLMOrchestrator(PromptedAgent):
    """Orchestrator π_O, which classifies a question and decides on its topology; its default is `fallback`."""

    async def characterise(self, question: str) -> Characterised:
        talk = self.talk("hera.characterise", {"question": question}, PROFILE)
        try:
            profile = await self.asked(talk, parse_profile, _RETRY, RETRIES)
            return Characterised(profile, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            note = talk.noted(f"the question was not characterised: {error}")
            return Characterised(Characterisation(), usage=talk.usage, raw=talk.raw, note=note)

    async def orchestrate(self, question: str, experience: Sequence[Lesson], sample: int = 0) -> Orchestration:
        """Return the topology that the model writes, or the fallback if all replies are unusable.

        Args:
            question: The question.
            experience: Entries of the library for such questions.
            sample: 0 for the best topology; any other number is the seed of a sample at `TEMPERATURE`.
        """
        shown = numbered([lesson.insight for lesson in experience]) or "none yet"
        agent = replace(self, sampling=replace(self.sampling, temperature=TEMPERATURE, seed=sample)) if sample else self
        talk = agent.talk("hera.orchestrate", {"question": question, "experience": shown}, TOPOLOGY)
        ids = tuple(lesson.id for lesson in experience)
        try:
            read = await agent.asked(talk, lambda reply: read_topology(reply, question), _RETRY, RETRIES)
            topology = replace(read.topology, experience=ids)
            return Orchestration(topology, read.warnings, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            note = f"the question was not orchestrated: {error}"
            topology = replace(fallback(question), experience=ids)
            return Orchestration(topology, fallback=True, usage=talk.usage, raw=talk.raw, note=talk.noted(note))

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Return another topology that the model writes, with the same experience.

        Args:
            question: The question.
            topology: The topology that failed.
            error: How it failed; of a traceback, the model is shown the last line.

        Raises:
            BadOutputError: All replies were unusable.
        """
        written = json.dumps(written_topology(topology), ensure_ascii=False, indent=1)
        values = {"question": question, "topology": written, "error": _reason_of(error)}
        talk = self.talk("hera.revise", values, TOPOLOGY, system="hera.orchestrate")
        read = await self.asked(talk, lambda reply: read_topology(reply, question), _RETRY, RETRIES)
        revised = replace(read.topology, experience=topology.experience)
        return Orchestration(revised, read.warnings, usage=talk.usage, raw=talk.raw)


def _reason_of(error: str) -> str:
    """Return the last line of a traceback, since the orchestrator sees no program; return other errors unchanged."""
    return lines_of(error.strip())[-1] if "Traceback (most recent call last)" in error else error.strip()


def fallback(question: str) -> Topology:
    """Return a topology of one search and one answer."""
    return Topology((Node("docs", "retriever"), Node("said", "answer_generator", depends_on=("docs",))))


@dataclass(frozen=True, slots=True)
class LLMQueryDecomposer(PromptedAgent):
    async def decompose(self, question: str) -> Decomposition:
        talk = self.talk("hera.query_decomposer", {"question": question}, SUB_QUERIES)
        try:
            sub_queries = await self.asked(talk, parse_sub_queries, _RETRY, RETRIES)
            return Decomposition(sub_queries, usage=talk.usage, raw=talk.raw)
        except BadOutputError as error:
            return Decomposition(
                (question,), usage=talk.usage, raw=talk.raw, note=f"the question was not decomposed: {error}"
            )


@dataclass(frozen=True, slots=True)
class LLMSelector(PromptedAgent):
    """Evidence selector. If its replies are unusable, it keeps all passages."""

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Keep the passages that the model names; all of them if its replies are unusable.

        Args:
            query: The question that the passages are for.
            passages: The candidates.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence}
        talk = self.talk("hera.documents", values, DOCUMENTS, system="hera.evidence_selector")
        try:
            positions, why = await self.asked(
                talk, lambda reply: parse_selection(reply, len(passages)), _RETRY, RETRIES
            )
        except BadOutputError as error:
            positions, why = tuple(range(len(passages))), str(error)
        return Selection(positions, why, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class LLMValidator(PromptedAgent):
    """Context validator. If its replies are unusable, the passages count as sufficient."""

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Return the model's verdict on whether passages suffice; yes if its replies are unusable.

        Args:
            query: The question that the passages are for.
            passages: All of the evidence.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence}
        talk = self.talk("hera.documents", values, VERDICT, system="hera.context_validator")
        try:
            good, why, missing = await self.asked(talk, lambda reply: parse_verdict(reply, "missing"), _RETRY, RETRIES)
        except BadOutputError as error:
            good, why, missing = True, str(error), ""
        return Validation(good, missing, why, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class LLMReflector(PromptedAgent):
    """Reflect agent. If its replies are unusable, the answer is accepted."""

    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Return the model's verdict on an answer; accepted if its replies are unusable.

        Args:
            query: The question.
            answer: The answer.
            passages: Passages behind the answer.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "answer": answer, "documents": documents, "fence": fence}
        talk = self.talk("hera.reflect", values, REVIEW)
        try:
            good, _, critique = await self.asked(talk, lambda reply: parse_verdict(reply, "critique"), _RETRY, RETRIES)
        except BadOutputError as error:
            good, critique = True, str(error)
        return Reflection(good, critique, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class WindowedSelector:
    inner: Selector
    window: ContextWindow = ContextWindow()

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Select among the passages that fit the model's window. Positions refer to all passages.

        Args:
            query: The question that the passages are for.
            passages: The candidates.
        """
        selection, fitted = await self.window.ask(query, passages, partial(self.inner.select, query))
        return replace(selection, positions=fitted.places(selection.positions), note=fitted.note)


@dataclass(frozen=True, slots=True)
class WindowedValidator:
    inner: Validator
    window: ContextWindow = ContextWindow()

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Judge by the passages that fit the model's window.

        Args:
            query: The question that the passages are for.
            passages: All of the evidence.
        """
        validation, fitted = await self.window.ask(query, passages, partial(self.inner.validate, query))
        return replace(validation, note=fitted.note)


@dataclass(frozen=True, slots=True)
class WindowedReflector:
    inner: Reflector
    window: ContextWindow = ContextWindow()

    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Review an answer by the passages that fit the model's window.

        Args:
            query: The question.
            answer: The answer.
            passages: Passages behind the answer.
        """
        ask = partial(self.inner.reflect, query, answer)
        reflection, fitted = await self.window.ask(f"{query}\n{answer}", passages, ask)
        return replace(reflection, note=fitted.note)


def hera_team(engines: RoleEngines) -> HeraTeam | None:
    """Return HERA's team, whose members use the engines of their roles; None if an engine is of an unknown kind."""
    answer, plan = _team_of(engines.answer), _team_of(engines.plan)
    decompose, rewrite = _team_of(engines.decompose), _team_of(engines.rewrite)
    if not (answer and plan and decompose and rewrite):
        return None
    return replace(
        answer,
        orchestrator=plan.orchestrator,
        decomposer=decompose.decomposer,
        rewriter=rewrite.rewriter,
        coach=plan.coach,
    )


def _team_of(engine: object) -> HeraTeam | None:
    if isinstance(engine, PromptedEngine):
        return _prompted_team(engine)
    if isinstance(engine, RuleEngine):
        from pyrag.methods.hera.embedded.team import embedded_team

        return embedded_team(engine)
    return None


def _prompted_team(engine: PromptedEngine) -> HeraTeam:
    parts = engine.model, engine.prompts, engine.sampling

    def fitted(agent: Agent, user: str = "hera.documents") -> ContextWindow:
        return engine.context_window_of(agent.replace("_", " "), f"hera.{agent}", user)

    def answerer(agent: Agent) -> WindowedAnswerer:
        inner = LLMAnalyst(
            model=engine.model,
            prompts=engine.prompts,
            sampling=engine.sampling,
            system=f"hera.{agent}",
            template="hera.documents",
            retry=_RETRY,
            facts="hera.facts",
        )
        return WindowedAnswerer(inner, fitted(agent))

    rewriter = LLMRewriter(*parts, "hera.query_rewriter", _RETRY)
    return HeraTeam(
        orchestrator=LLMOrchestrator(*parts),
        decomposer=LLMQueryDecomposer(*parts),
        answerer=answerer("answer_generator"),
        rewriter=WindowedRewriter(rewriter, fitted("query_rewriter", "hera.query_rewriter")),
        selector=WindowedSelector(LLMSelector(*parts), fitted("evidence_selector")),
        validator=WindowedValidator(LLMValidator(*parts), fitted("context_validator")),
        reflector=WindowedReflector(LLMReflector(*parts), fitted("reflect", "hera.reflect")),
        concluder=answerer("conclude"),
        coach=LLMCoach(*parts),
    )
