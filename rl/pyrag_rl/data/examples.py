"""A row before it has its prompt, and how its agent is asked for one (`pyrag_rl.prompting` listens to what it says)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.protocol import Agents
from pyrag.trace.model import Passage
from pyrag_rl.data.rows import Document, TrainRow
from pyrag_rl.prompting import prompt_of

Ask = Callable[[Agents], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Example:
    """A row without prompt, how its agent is asked, and a reply worth learning ("" where none is known)."""

    row: TrainRow
    ask: Ask
    reply: str = ""


async def prompted(example: Example, prompts: str | None = None) -> TrainRow:
    """The row with the messages that its agent sends; `prompts` is the runtime's setting."""
    return replace(example.row, messages=await prompt_of(example.ask, prompts))


def documents_of(passages: Iterable[Passage]) -> tuple[Document, ...]:
    return tuple(Document(id=one.id, title=one.title, text=one.text) for one in passages)


def ask_answer(query: str, passages: Sequence[Passage] | None) -> Ask:
    return lambda agents: agents.answerer.answer(query, passages)


def ask_analysis(query: str, passages: Sequence[Passage], question: str = "") -> Ask:
    """`question` is the user's, which the agent is shown beside the query."""

    def ask(agents: Agents) -> Awaitable[Any]:
        assert agents.analyst is not None
        about = getattr(agents.analyst, "about", None)
        analyst = agents.analyst if about is None or not question else about(question)
        answered: Awaitable[Any] = analyst.answer(query, passages)
        return answered

    return ask


def ask_rewrite(query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Ask:
    def ask(agents: Agents) -> Awaitable[Any]:
        assert agents.rewriter is not None
        return agents.rewriter.rewrite(query, tried, passages, missing)

    return ask


def ask_decomposition(question: str) -> Ask:
    return lambda agents: agents.decomposer.decompose(question)


def ask_program(question: str, sub_queries: Sequence[str]) -> Ask:
    return lambda agents: agents.planner.plan(question, sub_queries)


def ask_goals(question: str) -> Ask:
    def ask(agents: Agents) -> Awaitable[Any]:
        assert agents.goal_planner is not None
        return agents.goal_planner.plan(question)

    return ask
