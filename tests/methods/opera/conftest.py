"""The paper's two cases as a scripted world: what its agents said, and passages found by rewritten queries alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.episode.ledger import Recording
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import Passage, Trace
from pyrag_sandbox import Sandbox


def goal(step: int, text: str, kind: str, *needs: int, **more: Any) -> dict[str, Any]:
    return {"step": step, "goal": text, "type": kind, "needs": list(needs), **more}


def plan(*goals: dict[str, Any], rationale: str = "") -> str:
    return json.dumps({"rationale": rationale, "goals": goals})


def yes(answer: str, *documents: int, analysis: str = "", confidence: float = 0.95) -> str:
    said = {"analysis": analysis, "decision": "YES", "answer": answer, "confidence": confidence, "missing": ""}
    return json.dumps({**said, "documents": list(documents)})


def no(missing: str, analysis: str = "") -> str:
    return json.dumps({"analysis": analysis, "decision": "NO", "answer": "", "confidence": 0.1, "missing": missing})


def rewrite(query: str, *keywords: str, strategy: str = "") -> str:
    return json.dumps({"strategy": strategy, "query": query, "keywords": keywords})


@dataclass
class Case:
    """`found` maps a query to the texts it finds; any other finds noise. `log` holds the searches."""

    found: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log: list[tuple[str, int]] = field(default_factory=list)
    sandbox: Sandbox = field(default_factory=Sandbox)
    name: str = "case"
    delay: float = 0.0
    in_flight: int = 0
    most_in_flight: int = 0

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.log.append((query, topk))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.delay)
        self.in_flight -= 1
        texts = [*self.found.get(query, ()), *(f"noise {n} for {query}" for n in range(topk))][:topk]
        return [Passage(f"{query}-{n}", "", text, 1 / n) for n, text in enumerate(texts, start=1)]

    async def aclose(self) -> None:
        return

    async def ask(
        self,
        question: str,
        replies: Any = None,
        *,
        agents: Agents | None = None,
        recording: Recording | None = None,
        keep: bool = False,
        **settings: Any,
    ) -> Trace:
        engines = Engines(agents or make_llm_agents(ScriptedChat(replies)), self, self.sandbox)
        chosen = Settings(**{"method": "opera", **settings})
        return await answer_question(question, engines, chosen, recording=recording, keep=keep)


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    case = Case()
    yield case
    await case.sandbox.aclose()
