"""OPERA's Plan Agent and Analysis-Answer Agent over chat models (paper, section 3).

Each agent consists of a prompt of the folder `methods`, a schema for servers that enforce schemas, a parser and a
limited number of retries. `pyrag.methods.registry` compiles goals to a program, and `pyrag.episode.recovery` rewrites
queries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.agents.analyst import LLMAnalyst
from pyrag.agents.context_window import WindowedAnswerer
from pyrag.agents.conversation import Conversation
from pyrag.agents.goals.goal import Goal
from pyrag.agents.goals.rules import RuleEngine
from pyrag.agents.llm import LLMAnswerer
from pyrag.agents.prompted_agent import PromptedAgent, PromptedEngine
from pyrag.agents.protocol import Answerer, RoleEngines
from pyrag.errors import BadOutputError
from pyrag.methods.opera.goals import read_goals
from pyrag.methods.opera.protocol import GoalPlan, GoalPlanner, OperaAgents
from pyrag.methods.opera.rule_planner import RuleGoalPlanner
from pyrag.methods.opera.schemas import GOALS

_ANALYSIS = "opera.analyse"
_SYNTHESIS = "opera.synthesise"
PLAN_RETRIES = 3


@dataclass(frozen=True, slots=True)
class LLMGoalPlanner(PromptedAgent):
    """Plan Agent, which splits a question into goals. If all replies are unusable, the question is the only goal.

    Its plans take `composed` from the agent.
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
        """Return another plan by the model, which is shown the last line of the error.

        Args:
            question: The question.
            goals: The plan that failed.
            error: How it failed; not blank.

        Raises:
            BadOutputError: None of `PLAN_RETRIES` + 1 replies had usable goals.
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
    """Return a goal in the form in which the Plan agent writes it."""
    searched = goal.search if goal.search not in ("", goal.text) else bool(goal.search)
    head = {"step": goal.step, "goal": goal.text, "type": goal.type, "needs": list(goal.needs)}
    return {**head, "search": searched, "compute": goal.compute}


def opera_agents(engines: RoleEngines) -> OperaAgents | None:
    """Return OPERA's agents over the engines of the roles; None if the engines are of an unknown kind."""
    plan, answer = engines.plan, engines.answer
    planner: GoalPlanner
    if isinstance(plan, PromptedEngine):
        composed = isinstance(answer, PromptedEngine)  # rules cannot compose an answer from several
        planner = LLMGoalPlanner(plan.model, plan.prompts, plan.sampling, composed)
    elif isinstance(plan, RuleEngine):
        planner = RuleGoalPlanner(plan.rules)
    else:
        return None
    return OperaAgents(planner, _analyst(answer) if isinstance(answer, PromptedEngine) else None)


def _synthesiser(engine: PromptedEngine) -> Answerer:
    """Return the agent that composes answers: the Answer agent, unless the prompts have one for OPERA."""
    if not engine.prompts.has_method(_SYNTHESIS):
        return LLMAnswerer(engine.model, engine.prompts, engine.sampling)
    return _llm_analyst(engine, system=_SYNTHESIS, retry=f"{_SYNTHESIS}.retry", facts=_SYNTHESIS)


def _analyst(engine: PromptedEngine) -> WindowedAnswerer:
    analyst = _llm_analyst(engine, answerer=_synthesiser(engine))
    return WindowedAnswerer(analyst, engine.context_window_of("Analysis-Answer", analyst.system, analyst.template))


def _llm_analyst(
    engine: PromptedEngine,
    *,
    system: str = _ANALYSIS,
    retry: str = f"{_ANALYSIS}.retry",
    facts: str = "",
    answerer: Answerer | None = None,
) -> LLMAnalyst:
    return LLMAnalyst(
        model=engine.model,
        prompts=engine.prompts,
        sampling=engine.sampling,
        system=system,
        template=_ANALYSIS,
        retry=retry,
        facts=facts,
        answerer=answerer,
    )
