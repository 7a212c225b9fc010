"""OPERA's three agents over chat models: Plan Agent, Analysis-Answer Agent, Rewrite Agent (paper, section 3).

Each is a prompt of the folder `methods`, a schema for servers that enforce one, a parser and a bounded retry. Left out:
how goals become a program (`pyrag.methods.registry`), and when a query is rewritten (`pyrag.episode.recovery`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.context_window import WindowedAnswerer
from pyrag.agents.conversation import Conversation
from pyrag.agents.llm import LLMAnswerer
from pyrag.agents.passages import fenced_passages
from pyrag.agents.prompted_agent import PromptedAgent, PromptedEngine
from pyrag.agents.protocol import Answerer, Reading, RoleEngines
from pyrag.embedded import EmbeddedEngine
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goals import read_goals
from pyrag.methods.opera.judgements import Judged, parse_judged, salvage_judged
from pyrag.methods.opera.protocol import Goal, GoalPlan, GoalPlanner, OperaAgents
from pyrag.methods.opera.schemas import GOALS, JUDGEMENT
from pyrag.trace.model import UNKNOWN, Passage

_SYNTHESIS = "opera.synthesise"
PLAN_RETRIES = 3
RETRIES = 1


@dataclass(frozen=True, slots=True)
class LLMGoalPlanner(PromptedAgent):
    """Plan Agent: question → goals. After `PLAN_RETRIES` plans with errors, the question is its only goal.

    `composed` is that of its plans.
    """

    composed: bool = True

    async def plan(self, question: str) -> GoalPlan:
        talk = self.talk("opera.plan", {"question": question}, GOALS)
        try:
            return await self._goals(talk, question)
        except BadOutputError as error:
            note = f"the question was not planned: no usable goals in {PLAN_RETRIES + 1} replies ({error})"
            goal = Goal(1, question, search=question)
            return GoalPlan((goal,), fallback=True, usage=talk.usage, raw=talk.raw, note=talk.noted(note))

    async def revise(self, question: str, goals: Sequence[Goal], error: str) -> GoalPlan:
        """Return another plan that the model writes. Of the error, which is not blank, it is shown the last line.

        Args: those of `GoalPlanner.revise`.

        Raises:
            BadOutputError: `PLAN_RETRIES` + 1 replies had no usable goals.
        """
        written = json.dumps([written_goal(goal) for goal in goals], ensure_ascii=False, indent=1)
        values = {"question": question, "plan": written, "error": lines_of(error.strip())[-1]}
        return await self._goals(self.talk("opera.revise", values, GOALS, system="opera.plan"), question)

    async def _goals(self, talk: Conversation, question: str) -> GoalPlan:
        read = await self.asked(talk, lambda reply: read_goals(reply, question), "opera.plan.retry", PLAN_RETRIES)
        return GoalPlan(
            read.goals,
            read.rationale,
            read.warnings,
            composed=self.composed,
            usage=talk.usage,
            raw=talk.raw,
            note=talk.note,
        )


def written_goal(goal: Goal) -> dict[str, Any]:
    """A goal as the Plan agent writes it."""
    searched = goal.search if goal.search not in ("", goal.text) else bool(goal.search)
    head = {"step": goal.step, "goal": goal.text, "type": goal.type, "needs": list(goal.needs)}
    return {**head, "search": searched, "compute": goal.compute}


@dataclass(frozen=True, slots=True)
class LLMAnalyst(PromptedAgent):
    """Analysis-Answer Agent: judges whether the passages suffice, and answers if so. Out of form twice, they do not.

    Facts without passages are judged by the template `facts`, or are the answerer's, whose aggregation mode has nothing
    to judge. `question` is the user's, shown beside a query that is a step towards it.
    """

    answerer: Answerer | None = None
    system: str = "opera.analyse"
    template: str = "opera.analyse"
    retry: str = "opera.analyse.retry"
    facts: str = ""
    question: str = ""

    def about(self, question: str) -> LLMAnalyst:
        """This analyst, told which question its queries belong to."""
        return replace(self, question=question)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer where the evidence suffices, else an unknown one that says what is missing.

        Args:
            query: The question; without passages, with the facts to answer from.
            passages: The evidence; empty gives an unknown answer without a call, None answers from facts.
        """
        if passages is None and not self.facts:
            assert self.answerer is not None
            return await self.answerer.answer(query, None)
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages were given")  # not worth a call
        talk = self._opened(query, passages)
        count, note = len(passages or ()), ""
        try:
            said = await self.asked(talk, lambda reply: parse_judged(reply, count, query), self.retry, RETRIES)
        except BadOutputError as error:
            fault = f"the model's replies had no usable judgement: {error}"
            salvaged = (salvage_judged(reply, count, query) for reply in reversed(talk.whole))
            said = next(filter(None, salvaged), None) or Judged(UNKNOWN, False, (), None, fault, "")
            note = "" if said.known else talk.cut_off
        return Reading(
            said.text,
            said.known,
            said.citations,
            said.analysis,
            said.confidence,
            said.missing,
            usage=talk.usage,
            raw=talk.raw,
            note="; ".join(filter(None, (said.note, note))),
        )

    def _opened(self, query: str, passages: Sequence[Passage] | None) -> Conversation:
        if passages is None:
            return self.talk(self.facts, {"query": query}, JUDGEMENT, system=self.system)
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence, "question": self.question or query}
        return self.talk(self.template, values, JUDGEMENT, system=self.system, optional=("question",))


def opera_agents(engines: RoleEngines) -> OperaAgents | None:
    """Return OPERA's agents over the engines of the roles; None where these are of an unknown kind."""
    plan, answer = engines.plan, engines.answer
    planner: GoalPlanner
    if isinstance(plan, PromptedEngine):
        composed = isinstance(answer, PromptedEngine)  # rules conclude nothing beyond what a goal asked
        planner = LLMGoalPlanner(plan.model, plan.prompts, plan.sampling, composed)
    elif isinstance(plan, EmbeddedEngine):
        from pyrag.methods.opera.embedded import EmbeddedGoalPlanner

        planner = EmbeddedGoalPlanner()
    else:
        return None
    return OperaAgents(planner, _analyst(answer) if isinstance(answer, PromptedEngine) else None)


def _synthesiser(engine: PromptedEngine) -> Answerer:
    """Return the agent that concludes from answers: the Answer agent, unless the prompts have one for OPERA."""
    if not engine.prompts.has_method(_SYNTHESIS):
        return LLMAnswerer(engine.model, engine.prompts, engine.sampling)
    return LLMAnalyst(
        engine.model,
        engine.prompts,
        engine.sampling,
        system=_SYNTHESIS,
        retry=f"{_SYNTHESIS}.retry",
        facts=_SYNTHESIS,
    )


def _analyst(engine: PromptedEngine) -> WindowedAnswerer:
    analyst = LLMAnalyst(engine.model, engine.prompts, engine.sampling, _synthesiser(engine))
    return WindowedAnswerer(analyst, engine.context_window_of("Analysis-Answer", analyst.system, analyst.template))
