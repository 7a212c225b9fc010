"""OPERA: a plan of sub-goals with placeholders, judged answers and rewritten queries (its paper, section 3).

The method uses PyRAG's episode with another planner and a longer recovery ladder: the Plan agent's goals are compiled
to a program, an Analysis-Answer agent reads the passages, and the ladder rewrites queries. The Plan agent decides how
complex a question is: if one search suffices, the plan is a single goal, which costs only the planning call. (Answering
directly first, and planning only after an uncertain answer, does not help, because direct answers are too often
overconfident.) As in OPERA's release, a separate call composes the final answer from the goals' answers, unless
`synthesis` is `needed` or the engine has no language model. A plan that depends on an unknown answer is revised once,
as in PyRAG. The variants leave out the plan, the rewriting or both (paper, table 2).
"""

from __future__ import annotations

from dataclasses import replace

from pyrag.agents.goals.goal import Goal
from pyrag.agents.protocol import Agents, Answerer
from pyrag.episode.episode import Episode
from pyrag.errors import BadOutputError, ConfigError
from pyrag.methods.method import Method
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.goal_program import compile_goals
from pyrag.methods.opera.protocol import STATE, GoalPlan, GoalPlanner, OperaState, planned_goals
from pyrag.methods.opera.trajectory import count, view
from pyrag.methods.program_result import Result
from pyrag.methods.repair import Draft, announce, run_repaired
from pyrag.settings import Settings
from pyrag.trace.events import Decomposed
from pyrag.trace.model import UNPLANNED, Program

VARIANTS = ("full", "no-plan", "no-rewrite", "no-plan-no-rewrite")


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer a question by a plan of goals, run and repaired. The variant determines planning and rewriting.

    Args:
        episode: The running episode.
        settings: `method` names the variant after a colon; `repairs` is the maximum number of revisions; `synthesis`
            decides whether the final answer is composed.

    Raises:
        ConfigError: The variant needs a Plan agent, and the engine has none.
        ProgramFailedError: The last revision failed too.
    """
    variant = settings.method.partition(":")[2]
    episode.agents = replace(episode.agents, answerer=_analyst(episode.agents, episode.question))
    if "no-rewrite" in variant:
        episode.ladder = ()
    has_plan = "no-plan" not in variant
    synthesis = settings.synthesis == "always"

    async def revise(program: Program, error: str, origin: str) -> Draft:
        if not has_plan:
            raise BadOutputError("there is no Plan agent to ask for another way")
        return await _revise(episode, error, origin, synthesis=synthesis)

    plan = await _plan(episode) if has_plan else GoalPlan((Goal(1, episode.question, search=episode.question),))
    draft = _draft(episode, plan, "plan" if has_plan else UNPLANNED, synthesis=synthesis)
    return await run_repaired(episode, announce(episode, draft), revise, settings.repairs)


def _analyst(agents: Agents, question: str) -> Answerer:
    """Return the Analysis-Answer agent, set up for the original question if it supports that, or the Answer agent."""
    team = agents.team(opera_agents)
    if team is None or team.analyst is None:
        return agents.answerer
    about = getattr(team.analyst, "about", None)
    analyst: Answerer = team.analyst if about is None else about(question)
    return analyst


async def _plan(episode: Episode) -> GoalPlan:
    planner, question = _planner(episode), episode.question
    return await episode.requests.fresh("goals", {"question": question}, lambda: planner.plan(question), GoalPlan)


def _planner(episode: Episode) -> GoalPlanner:
    team = episode.agents.team(opera_agents)
    if team is None:
        raise ConfigError(f"method opera needs a Plan agent for goals, which {episode.agents.name} lacks: use --llm")
    return team.goal_planner


async def _revise(episode: Episode, error: str, origin: str, *, synthesis: bool) -> Draft:
    planner, question, goals = _planner(episode), episode.question, planned_goals(episode)
    texts = [goal.text for goal in goals]
    plan = await episode.requests.fresh(
        "revise",
        {"question": question, "goals": texts, "error": error},
        lambda: planner.revise(question, goals, error),
        GoalPlan,
    )
    return _draft(episode, plan, origin, synthesis=synthesis)


def _draft(episode: Episode, plan: GoalPlan, origin: str, *, synthesis: bool) -> Draft:
    """Return the plan as a program, and make its goals the episode's."""
    episode.keep_notes("goals", plan)
    STATE.write(episode, OperaState(plan.goals))
    episode.sub_queries = tuple(goal.text for goal in plan.goals)
    episode.observer(Decomposed(episode.sub_queries, plan.note))
    source = compile_goals(episode.question, plan.goals, synthesis=synthesis and plan.composed)
    return Draft(
        Program(source, planner=episode.agents.name, origin=origin, rationale=plan.rationale), plan.note, plan.doubt
    )


METHOD = Method(name="opera", answer=answer, variants=VARIANTS, recovery="rewrite", view=view, count=count)
