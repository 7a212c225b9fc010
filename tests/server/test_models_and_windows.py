"""What a server says about its models: `pyrag models`, and windows that passages are fitted to."""

from __future__ import annotations

import json

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError
from pyrag.trace.model import Passage
from tests.server.conftest import ModelServer, Run

QUESTION = "Who is Jed Hoyer?"
OFFERED = [
    {"id": "tiny", "object": "model", "max_model_len": 4096, "parent": None, "root": "/models/tiny"},
    {"id": "planner", "object": "model", "max_model_len": None, "parent": "tiny"},
    {"id": "plain"},
]


def test_models_on_the_command_line(server: ModelServer, pyrag: Run) -> None:
    server.models = OFFERED
    spec = f"openai:@{server.url}"
    lines = pyrag("models", "--llm", spec).stdout.splitlines()
    assert lines == ["tiny\t4096 tokens", "planner\tadapter of tiny", "plain"]
    found = json.loads(pyrag("models", "--llm", spec, "--json").stdout)
    assert found[1] == {"id": "planner", "parent": "tiny", "context_tokens": None}


def test_models_without_a_server(pyrag: Run) -> None:
    failed = pyrag("models")
    assert failed.returncode == 2
    assert "name a server with --llm" in failed.stderr
    assert failed.stderr.count("\n") == 1
    failed = pyrag("models", "--llm", "openai:@http://127.0.0.1:9/v1")
    assert failed.returncode == 3
    assert failed.stderr.count("\n") == 1


class LongPassages:
    name = "long"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        return [Passage(str(n), "Jed Hoyer", f"number {n} " + "works " * 900, 1 / (n + 1)) for n in range(topk)]

    async def aclose(self) -> None:
        return


async def test_passages_are_fitted_to_the_window_that_the_server_tells(
    server: ModelServer,
) -> None:
    server.models = OFFERED
    async with PyRAG(f"openai:tiny@{server.url}", retriever=LongPassages()) as rag:
        traces = [await rag.aask(QUESTION) for _ in range(2)]
    assert server.listed == 1
    sent = len(server.bodies[2]["messages"][-1]["content"])
    assert 4_000 < sent < 4 * (4096 - 1024)
    assert "of 5 passages" in traces[0].warnings[-1]
    assert len(traces[0].steps[1].passages) == 5  # what was given; the rationale says what was read
    assert traces[0].warnings[-1] in traces[0].steps[1].rationale


async def test_a_window_in_the_settings(server: ModelServer) -> None:
    async with PyRAG(f"openai:tiny@{server.url}", context_tokens=1024) as rag:
        await rag.aask(QUESTION)
    assert server.listed == 0
    assert {body["max_tokens"] for body in server.bodies} == {256}
    with pytest.raises(ConfigError, match="at least 512"):
        PyRAG(context_tokens=10)


async def test_short_prompts_ask_for_no_window(server: ModelServer) -> None:
    async with PyRAG(f"openai:tiny@{server.url}") as rag:
        await rag.aask(QUESTION)
    assert server.listed == 0
