"""HERA's team over a chat model: an orchestrator and eight agents, each a prompt `hera.AGENT` with a typed result."""

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
TEMPERATURE = 0.9  # of the samples of a group (paper, §4)
_RETRY = "hera.retry"


@dataclass(frozen=True, slots=True)
class LLMOrchestrator(PromptedAgent):
    """π_O: characterises a question and decides its topology. Out of form for good, a question is `fallback`."""

    async def characterise(self, question: str) -> Characterised:
        talk = self.talk("hera.characterise", {"question": question}, PROFILE)
        try:
            profile = await self.asked(talk, parse_profile, _RETRY, RETRIES)
            return Characterised(profile, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            note = talk.noted(f"the question was not characterised: {error}")
            return Characterised(Characterisation(), usage=talk.usage, raw=talk.raw, note=note)

    async def orchestrate(self, question: str, experience: Sequence[Lesson], sample: int = 0) -> Orchestration:
        """Return the topology that the model writes, or the fallback where its replies stay out of form. A sample other
        than 0 is the seed of one at `TEMPERATURE`.

        Args: those of `Orchestrator.orchestrate`.
        """
        shown = numbered([one.insight for one in experience]) or "none yet"
        agent = replace(self, sampling=replace(self.sampling, temperature=TEMPERATURE, seed=sample)) if sample else self
        talk = agent.talk("hera.orchestrate", {"question": question, "experience": shown}, TOPOLOGY)
        ids = tuple(one.id for one in experience)
        try:
            read = await agent.asked(talk, lambda reply: read_topology(reply, question), _RETRY, RETRIES)
            topology = replace(read.topology, experience=ids)
            return Orchestration(topology, read.warnings, usage=talk.usage, raw=talk.raw, note=talk.note)
        except BadOutputError as error:
            note = f"the question was not orchestrated: {error}"
            topology = replace(fallback(question), experience=ids)
            return Orchestration(topology, fallback=True, usage=talk.usage, raw=talk.raw, note=talk.noted(note))

    async def revise(self, question: str, topology: Topology, error: str) -> Orchestration:
        """Return another topology that the model writes, with the same experience. Of a traceback, it is shown the last
        line.

        Args: those of `Orchestrator.revise`.

        Raises:
            BadOutputError: the replies stayed out of form.
        """
        written = json.dumps(written_topology(topology), ensure_ascii=False, indent=1)
        values = {"question": question, "topology": written, "error": _told(error)}
        talk = self.talk("hera.revise", values, TOPOLOGY, system="hera.orchestrate")
        read = await self.asked(talk, lambda reply: read_topology(reply, question), _RETRY, RETRIES)
        revised = replace(read.topology, experience=topology.experience)
        return Orchestration(revised, read.warnings, usage=talk.usage, raw=talk.raw)


def _told(error: str) -> str:
    """Return the error as an orchestrator is told it: of a traceback, the error; it does not know the program."""
    return lines_of(error.strip())[-1] if "Traceback (most recent call last)" in error else error.strip()


def fallback(question: str) -> Topology:
    """One search and one answer."""
    return Topology((Node("docs", "retriever"), Node("said", "answer_generator", depends_on=("docs",))))


@dataclass(frozen=True, slots=True)
class LLMQueryDecomposer(PromptedAgent):
    async def decompose(self, question: str) -> Decomposition:
        talk = self.talk("hera.query_decomposer", {"question": question}, SUB_QUERIES)
        try:
            found = await self.asked(talk, parse_sub_queries, _RETRY, RETRIES)
            return Decomposition(found, usage=talk.usage, raw=talk.raw)
        except BadOutputError as error:
            return Decomposition(
                (question,), usage=talk.usage, raw=talk.raw, note=f"the question was not decomposed: {error}"
            )


@dataclass(frozen=True, slots=True)
class LLMSelector(PromptedAgent):
    """Out of form, it keeps everything."""

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Keep the passages that the model names; all where its replies stay out of form.

        Args: those of `Selector.select`.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence}
        talk = self.talk("hera.documents", values, DOCUMENTS, system="hera.evidence_selector")
        try:
            kept, why = await self.asked(talk, lambda reply: parse_selection(reply, len(passages)), _RETRY, RETRIES)
        except BadOutputError as error:
            kept, why = tuple(range(len(passages))), str(error)
        return Selection(kept, why, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class LLMValidator(PromptedAgent):
    """Out of form, passages are taken to suffice."""

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Return the model's verdict on whether passages suffice; yes where its replies stay out of form.

        Args: those of `Validator.validate`.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence}
        talk = self.talk("hera.documents", values, VERDICT, system="hera.context_validator")
        try:
            good, why, missing = await self.asked(talk, lambda said: parse_verdict(said, "missing"), _RETRY, RETRIES)
        except BadOutputError as error:
            good, why, missing = True, str(error), ""
        return Validation(good, missing, why, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class LLMReflector(PromptedAgent):
    """Out of form, an answer stands."""

    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Return the model's verdict on an answer; accepted where its replies stay out of form.

        Args: those of `Reflector.reflect`.
        """
        fence, documents = fenced_passages(passages)
        values = {"query": query, "answer": answer, "documents": documents, "fence": fence}
        talk = self.talk("hera.reflect", values, REVIEW)
        try:
            good, _, critique = await self.asked(talk, lambda said: parse_verdict(said, "critique"), _RETRY, RETRIES)
        except BadOutputError as error:
            good, critique = True, str(error)
        return Reflection(good, critique, usage=talk.usage, raw=talk.raw)


@dataclass(frozen=True, slots=True)
class WindowedSelector:
    inner: Selector
    window: ContextWindow = ContextWindow()

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Select among the passages that fit the model's window; positions count in all those given.

        Args: those of `Selector.select`.
        """
        selection, fitted = await self.window.ask(query, passages, partial(self.inner.select, query))
        return replace(selection, positions=fitted.places(selection.positions), note=fitted.note)


@dataclass(frozen=True, slots=True)
class WindowedValidator:
    inner: Validator
    window: ContextWindow = ContextWindow()

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Judge by the passages that fit the model's window. Args: those of `Validator.validate`."""
        validation, fitted = await self.window.ask(query, passages, partial(self.inner.validate, query))
        return replace(validation, note=fitted.note)


@dataclass(frozen=True, slots=True)
class WindowedReflector:
    inner: Reflector
    window: ContextWindow = ContextWindow()

    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Review an answer by the passages that fit the model's window. Args: those of `Reflector.reflect`."""
        ask = partial(self.inner.reflect, query, answer)
        reflection, fitted = await self.window.ask(f"{query}\n{answer}", passages, ask)
        return replace(reflection, note=fitted.note)


def hera_team(engines: RoleEngines) -> HeraTeam | None:
    """Return HERA's team, whose members have the engines of their roles; None where one is of an unknown kind."""
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
