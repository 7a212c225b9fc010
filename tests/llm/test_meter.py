"""A meter over several models, and prompts that change over the same models."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.agents.prompts import load_prompts
from pyrag.errors import BudgetExceededError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply
from pyrag.llm.wrappers import Meter, MeteredChat
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings

ASKED = (Message("user", "?"),)


async def test_models_share_what_a_meter_allows() -> None:
    meter = Meter(max_calls=3)
    one, other = MeteredChat(ScriptedChat(["a", "b"]), meter), MeteredChat(ScriptedChat(["c", "d"]), meter)
    assert [(await model.complete(ASKED)).text for model in (one, other, one)] == ["a", "c", "b"]
    with pytest.raises(BudgetExceededError, match="3 model calls is spent: raise --max-calls"):
        await other.complete(ASKED)
    assert meter.calls == 3


async def test_no_call_begins_after_the_last_token() -> None:
    meter = Meter(max_tokens=10)
    model = MeteredChat(ScriptedChat(lambda _: Reply("a", prompt_tokens=5, completion_tokens=3)), meter)
    await model.complete(ASKED)
    await model.complete(ASKED)
    with pytest.raises(BudgetExceededError, match="10 tokens is spent: raise --max-tokens"):
        await model.complete(ASKED)
    assert (meter.calls, meter.tokens) == (2, 16)


async def test_engines_with_other_prompts_share_models_and_meter(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["[\\"first\\"]", "[\\"second\\"]"]')
    meter = Meter()
    engines = open_engines(Settings(llm=f"scripted:{script}"), meter=meter)
    other = engines.prompted(load_prompts())
    try:
        assert (await engines.agents.decomposer.decompose("?")).sub_queries == ("first",)
        assert (await other.agents.decomposer.decompose("?")).sub_queries == ("second",)
        assert other.agents is not engines.agents
        assert meter.calls == 2
    finally:
        await engines.aclose()
