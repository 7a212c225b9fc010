"""Rows without prompts, and the calls that ask their agents. `pyrag_rl.prompting` records the messages sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.protocol import Agents
from pyrag.methods.opera.agents import opera_agents
from pyrag.trace.model import Passage
from pyrag_rl.data.rows import Document, TrainRow
from pyrag_rl.prompting import prompt_of

Ask = Callable[[Agents], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class PromptlessRow:
    """Row without a prompt, with the call that asks its agent and a reply worth learning (empty if unknown).

    `fault` is the reason why a reply that led to a right answer is still not worth learning; `mended` is set if the
    reply was changed. `copies` is the number of times to write the row.
    """

    row: TrainRow
    ask: Ask
    reply: str = ""
    fault: str = ""
    mended: bool = False
    copies: int = 1


async def prompted(example: PromptlessRow, prompts: str | None = None) -> TrainRow:
    """Return the row with the messages that its agent sends.

    Args:
        example: Row, with the call that asks its agent.
        prompts: The runtime's setting: a folder of prompts, or None.
    """
    return replace(example.row, messages=await prompt_of(example.ask, prompts))


def documents_of(passages: Iterable[Passage]) -> tuple[Document, ...]:
    return tuple(Document(id=passage.id, title=passage.title, text=passage.text) for passage in passages)


def ask_answer(query: str, passages: Sequence[Passage] | None) -> Ask:
    """Return a call of the Answer agent.

    Args:
        query: The question or sub-query.
        passages: The evidence; None to aggregate the facts in the query.
    """
    return lambda agents: agents.answerer.answer(query, passages)


def ask_analysis(query: str, passages: Sequence[Passage], question: str = "") -> Ask:
    """Return a call of OPERA's Analysis-Answer agent.

    Args:
        query: Question of a goal.
        passages: The evidence.
        question: The user's question, which is shown to the agent in addition to the query.
    """

    def ask(agents: Agents) -> Awaitable[Any]:
        team = agents.team(opera_agents)
        assert team is not None
        assert team.analyst is not None
        about = getattr(team.analyst, "about", None)
        analyst = team.analyst if about is None or not question else about(question)
        answered: Awaitable[Any] = analyst.answer(query, passages)
        return answered

    return ask


def ask_rewrite(query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Ask:
    """Return a call of the Rewrite agent.

    Args:
        query: Question of the step.
        tried: Queries that did not find the evidence.
        passages: Passages that these queries found.
        missing: Information that the passages lack; may be empty.
    """

    def ask(agents: Agents) -> Awaitable[Any]:
        assert agents.rewriter is not None
        return agents.rewriter.rewrite(query, tried, passages, missing)

    return ask


def ask_decomposition(question: str) -> Ask:
    return lambda agents: agents.decomposer.decompose(question)


def ask_program(question: str, sub_queries: Sequence[str]) -> Ask:
    """Return a call of the Plan agent for a program.

    Args:
        question: The user's question.
        sub_queries: Sub-queries of the Decompose agent.
    """
    return lambda agents: agents.planner.plan(question, sub_queries)


def ask_joint_program(question: str) -> Ask:
    """Return a call of the Plan agent for sub-queries and program in one reply."""
    return lambda agents: agents.planner.plan(question, None)


def ask_repair(question: str, sub_queries: Sequence[str], source: str, error: str) -> Ask:
    """Return a call of the Plan agent that repairs a program.

    Args:
        question: The user's question.
        sub_queries: Sub-queries that the program was written for.
        source: The program that failed.
        error: Error of the program.
    """
    return lambda agents: agents.planner.repair(question, sub_queries, source, error)


def ask_goals(question: str) -> Ask:
    def ask(agents: Agents) -> Awaitable[Any]:
        team = agents.team(opera_agents)
        assert team is not None
        return team.goal_planner.plan(question)

    return ask
