"""Programs over tools: a scripted model writes them, the real runtime runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pyrag.agents.llm import LLMPlanner, make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.episode.ledger import Recording
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.tools.tool import as_tools, describe
from pyrag.trace.model import Passage, Trace
from pyrag_sandbox import Sandbox

PASSAGES = (
    Passage("alpha", "Alpha", "Alpha is a town on the river Beta. Its mayor is Ada Berg."),
    Passage("gamma", "Gamma", "Gamma is a town in the hills. Its mayor is Carl Dahl."),
)


@dataclass
class Desk:
    """Asks questions whose programs are given."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    retriever: InMemoryRetriever = field(default_factory=lambda: InMemoryRetriever(PASSAGES))
    model: ScriptedChat | None = None

    async def ask(
        self,
        *programs: str,
        tools: Sequence[Callable[..., Any]] = (),
        answers: Sequence[str] = (),
        recording: Recording | None = None,
        keep: bool = False,
        agents: Agents | None = None,
        question: str = "How many?",
        **settings: Any,
    ) -> Trace:
        """Ask, with each program as a plan or its repair, and the answers in order."""
        made = as_tools(tools)
        written = [f"```python\n{program}\n```" for program in programs]
        self.model = ScriptedChat({"decompose": f'["{question}"]', "plan": written, "answer": list(answers)})
        if agents is None:
            agents = make_llm_agents(self.model)
            if made:
                agents = _equipped(agents, describe(made))
        engines = Engines(agents, self.retriever, self.sandbox, tools=made)
        chosen = Settings(**{"repairs": max(len(programs) - 1, 0), "stream": False, **settings})
        return await answer_question(question, engines, chosen, recording=recording, keep=keep)


def _equipped(agents: Agents, text: str) -> Agents:
    planner = agents.planner
    assert isinstance(planner, LLMPlanner)
    return replace(agents, planner=planner.with_tools(text))


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.sandbox.aclose()
