"""The cache and money budgets over a real server, from settings and the command line."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError
from pyrag.llm.cache import default_path
from tests.server.conftest import REPLIES, ModelServer, Run, role_in

QUESTION = "Who is Jed Hoyer?"


async def test_a_second_asking_costs_nothing(server: ModelServer, tmp_path: Path) -> None:
    settings = {"cache": str(tmp_path / "c"), "price_in": 1.0, "price_out": 10.0, "max_cost": 1.0}
    traces = []
    for _ in range(2):
        async with PyRAG(f"openai:tiny@{server.url}", **settings) as rag:
            traces.append(await rag.aask(QUESTION))
    first, second = (trace.usage for trace in traces)
    assert [trace.answer.text for trace in traces] == ["an executive"] * 2
    assert (first.model_calls, first.cached_calls, first.prompt_tokens) == (4, 0, 400)
    assert (second.model_calls, second.cached_calls, second.prompt_tokens) == (0, 4, 0)
    assert (first.cached_tokens, second.cached_tokens) == (0, 440)
    assert first.cost == pytest.approx(4 * (100 + 10 * 10) / 1e6)
    assert second.cost == 0
    assert len(server.bodies) == 4


async def test_concurrent_requests_share_the_budget_left_by_the_cache(server: ModelServer, tmp_path: Path) -> None:
    lines = [
        f'd{n} = retrieve("Who is Jed Hoyer {n}?")\na{n} = answer("Who is Jed Hoyer {n}?", d{n})' for n in range(5)
    ]
    names = " ".join(f"{{a{n}}}" for n in range(5))
    server.replies["plan"] = "\n".join(["```python", *lines, f'final_answer = f"{names}"', "```"])
    cache = str(tmp_path / "c")
    for calls, error in ((7, False), (1, False)):
        async with PyRAG(f"openai:tiny@{server.url}", cache=cache, max_calls=calls) as rag:
            trace = await rag.aask(QUESTION)
        assert (trace.error is not None) == error, trace.error
    assert trace.usage.cached_calls == 7
    async with PyRAG(f"openai:tiny@{server.url}", cache=str(tmp_path / "d"), max_calls=4) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert trace.error.kind == "budget"
    assert trace.usage.model_calls == 4


async def test_no_cache_and_no_prices_by_default(server: ModelServer, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    async with PyRAG(f"openai:tiny@{server.url}") as rag:
        traces = [await rag.aask(QUESTION) for _ in range(2)]
    assert len(server.bodies) == 8
    assert traces[0].usage.cost is None
    assert not default_path().parent.exists()


async def test_max_cost_stops_with_what_is_done(server: ModelServer) -> None:
    def dearer(body: dict[str, Any]) -> None:
        server.usage["prompt_tokens"] = 400 if role_in(body) == "answer" else 100

    server.refuse = dearer  # answers cost more than the estimate, which rests on planning
    async with PyRAG(f"openai:tiny@{server.url}", price_in=1.0, price_out=1.0, max_cost=0.0005) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert trace.error.kind == "budget"
    assert "is spent" in trace.error.message
    assert "raise --max-cost" in trace.error.message
    assert trace.answer.text == "an executive"  # partial
    assert not trace.answer.known
    assert server.roles == ["decompose", "plan", "answer"]


async def test_max_cost_refuses_a_program_that_exceeds_it(server: ModelServer) -> None:
    async with PyRAG(f"openai:tiny@{server.url}", price_in=1.0, price_out=1.0, max_cost=0.0003) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert (trace.error.kind, server.roles) == ("budget", ["decompose", "plan"])
    assert "the program was not run: it costs at least" in trace.error.message


@pytest.mark.parametrize("method", ["pyrag", "vanilla", "cot", "opera", "hera"])
async def test_every_method_warns_of_impossible_counts(server: ModelServer, method: str) -> None:
    server.usage = {"prompt_tokens": -1, "completion_tokens": 3}
    server.replies = defaultdict(lambda: "<answer>an executive</answer>", REPLIES)
    async with PyRAG(f"openai:tiny@{server.url}", method=method) as rag:
        trace = await rag.aask(QUESTION)
    assert sum("estimated" in warning for warning in trace.warnings) == 1


@pytest.mark.parametrize("tokens", [-1_000_000, float("nan"), 0.5, "a lot", 10**15, None])
async def test_limits_and_costs_hold_whatever_is_counted(server: ModelServer, tokens: Any) -> None:
    server.usage = {"prompt_tokens": tokens, "completion_tokens": tokens}
    async with PyRAG(f"openai:tiny@{server.url}", price_in=1.0, price_out=1.0, max_tokens=500) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.error
    assert trace.error.kind == "budget"
    assert trace.usage.cost is not None
    assert 0 < trace.usage.cost < 0.1
    assert sum("tokens" in warning for warning in trace.warnings) == 1


def test_max_cost_needs_prices() -> None:
    with pytest.raises(ConfigError, match="price_in"):
        PyRAG(max_cost=1.0)
    with pytest.raises(ConfigError, match="price_out must not be negative"):
        PyRAG(price_out=-1.0)


@pytest.mark.slow
def test_the_command_line(server: ModelServer, pyrag: Run, tmp_path: Path) -> None:
    ask = ("ask", QUESTION, "--llm", f"openai:tiny@{server.url}", "--json")
    env = {"XDG_CACHE_HOME": str(tmp_path / "xdg")}
    assert json.loads(pyrag("cache", "info", "--json", **env).stdout)["replies"] == 0
    usages = [json.loads(pyrag(*ask, "--cache", **env).stdout)["usage"] for _ in range(2)]
    assert [usage["cached_calls"] for usage in usages] == [0, 4]
    assert pyrag(*ask, PYRAG_CACHE="true", **env).returncode == 0
    assert len(server.bodies) == 4
    found = json.loads(pyrag("cache", "info", "--json", **env).stdout)
    assert found["replies"] == 4
    assert found["path"] == str(tmp_path / "xdg/pyrag/replies.sqlite")
    assert pyrag("cache", "clear", **env).stdout.startswith("deleted 4 replies")
    Path(found["path"]).write_text("damaged" * 100)
    failed = pyrag(*ask, "--cache", **env)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
    assert "run pyrag cache clear" in failed.stderr
    assert pyrag("cache", "clear", "--json", **env).returncode == 0


def test_a_cache_in_the_settings_file(server: ModelServer, pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "pyrag.toml").write_text(f'llm = "openai:tiny@{server.url}"\ncache = "kept.sqlite"\n')
    assert pyrag("ask", QUESTION).returncode == 0
    assert (tmp_path / "kept.sqlite").is_file()
    assert pyrag("cache", "info").stdout.startswith("4 replies")
    assert pyrag("ask", QUESTION, "--no-cache").returncode == 0
    assert len(server.bodies) == 8


@pytest.mark.slow
def test_a_second_benchmark_run_makes_no_model_call(server: ModelServer, pyrag: Run, tmp_path: Path) -> None:
    arguments = (
        "bench",
        "--sets",
        "mini-popqa",
        "--method",
        "pyrag",
        "--limit",
        "3",
        "--llm",
        f"openai:tiny@{server.url}",
    )
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = pyrag(*arguments, "--cache", "--out", "one", "--json", **home)
    asked = len(server.bodies)
    second = pyrag(*arguments, "--cache", "--out", "two", "--json", **home)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert asked > 0
    assert len(server.bodies) == asked
