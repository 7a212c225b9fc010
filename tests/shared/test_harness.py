"""The agents against the fake model of `../shared/harness`, where that folder lies beside this checkout."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.trace.model import Passage

HARNESS = Path(__file__).parents[3] / "shared" / "harness"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not HARNESS.is_dir(), reason="needs ../shared/harness beside this checkout"),
]


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    import importlib

    names = ("scenarios", "serving", "fake_llm")
    monkeypatch.syspath_prepend(str(HARNESS))
    found = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    return found


@pytest.fixture
async def fake(harness: dict[str, ModuleType]) -> AsyncIterator[tuple[Agents, Any]]:
    gate = harness["serving"].Gate()
    runner = web.AppRunner(harness["fake_llm"].build(gate), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    model = OpenAIChat("fake", f"http://{host}:{port}/v1")
    yield make_llm_agents(model), gate
    await model.aclose()
    await runner.cleanup()


@pytest.mark.parametrize("name", ["chain", "comparison", "adaptive", "name_error", "syntax_error", "unicode"])
async def test_fewest_calls(harness: dict[str, ModuleType], fake: tuple[Agents, Any], name: str) -> None:
    agents, gate = fake
    fill, scenario = harness["scenarios"].fill, harness["scenarios"].by_name(name)
    question = fill(scenario.question, 7)

    sub_queries = (await agents.decomposer.decompose(question)).sub_queries
    assert sub_queries == tuple(fill(query, 7) for query in scenario.sub_queries)

    plan = await agents.planner.plan(question, sub_queries)
    if name == "name_error":
        assert plan.source == fill(scenario.broken, 7)
        plan = await agents.planner.repair(question, sub_queries, plan.source, "line 3: NameError: no such name")
    assert plan.source == fill(scenario.program, 7)

    for fact in scenario.facts:
        passages = [Passage(str(i), "", fill(fact.evidence, 7) if i == 3 else f"Filler {i}.") for i in range(5)]
        reading = await agents.answerer.answer(fill(fact.question, 7), passages)
        assert (reading.text, reading.known) == (fill(fact.answer, 7), True)
        nothing = await agents.answerer.answer(fill(fact.question, 7), passages[:3])
        assert not nothing.known

    facts = ", ".join(fill(fact.answer, 7) for fact in scenario.facts)
    final = await agents.answerer.answer(f"Given: {facts}. Answer the question: {question}", None)
    assert final.text == fill(scenario.answer, 7)
    broken = bool(scenario.broken)
    assert gate.counts["calls_decompose"] == 1
    assert gate.counts["calls_plan"] == 1 + broken
    assert gate.counts["calls_answer"] == 2 * len(scenario.facts) + 1
