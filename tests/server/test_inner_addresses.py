"""Addresses of model servers and retrievers behind the service: in its log, and in no reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.server.config import ServerConfig
from pyrag.server.errors import public_text
from tests.server.conftest import ModelServer, role_in
from tests.server.live import live
from tests.server.test_serve import SCRIPTED, Client, running

CHAT = {"model": "pyrag", "messages": [{"role": "user", "content": SCRIPTED}]}
RESPONSE = {"model": "pyrag", "input": SCRIPTED}
REQUESTS: list[tuple[str, Any]] = [
    ("/v1/ask", {"question": SCRIPTED, "include_trace": True}),
    ("/v1/ask", {"question": SCRIPTED, "include_trace": True, "stream": True}),
    ("/v1/ask/batch", {"questions": [SCRIPTED], "include_trace": True}),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/responses", RESPONSE),
    ("/v1/responses", {**RESPONSE, "stream": True}),
    ("/retrieve", {"queries": ["x"]}),
]


def too_long(body: dict[str, Any]) -> tuple[int, Any] | None:
    """A window that holds one passage; the reply is a warning then."""
    if role_in(body) == "answer" and "[Doc 2]" in body["messages"][-1]["content"]:
        return 400, {"error": {"message": "too long", "code": "context_length_exceeded"}}
    return None


def odd(body: dict[str, Any]) -> tuple[int, Any]:
    return 400, {"error": {"message": "odd, says 10.1.2.3:8000"}}


def unread(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"choices": 1}


async def everything(client: Client) -> str:
    """All that the service sends about questions and its state."""
    found = []
    for path, body in REQUESTS:
        async with client.session.post(client.url + path, json=body) as reply:
            found.append(await reply.text())
    listed = (await client.get("/v1/traces"))[1]["traces"]
    kept = [await client.get(f"/v1/traces/{one['id']}") for one in listed]
    state = [await client.get(path) for path in ("/readyz", "/health", "/v1/options", "/metrics")]
    return "\n".join([*found, json.dumps(kept), json.dumps(state)]).replace(client.url, "")


@pytest.mark.parametrize("refuse", [too_long, odd, unread])
async def test_replies_name_no_model_server(
    server: ModelServer, refuse: Callable[[dict[str, Any]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    server.refuse = refuse
    async with running(llm=f"openai:tiny@{server.url}") as client:
        text = await everything(client)
    assert "openai:tiny" in text
    address = server.url.split("/")[2]
    assert re.findall(f".{{0,80}}{address}", text) == []
    assert "10.1.2.3" not in text
    assert (server.url in caplog.text) == (refuse is not too_long)


async def test_replies_name_no_server_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    with live() as searched:
        address = searched.url.removeprefix("http://")
        config = ServerConfig(indexes={"far": searched.url})
        async with running(config, llm=f"openai:tiny@{searched.url}/v1", deadline=1) as client:
            searched.service.draining = True  # refuses searches from now on; it has no such model
            assert address not in await everything(client)
    assert address in caplog.text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("openai:m@http://h:80/v1 refused: start it", "openai:m refused: start it"),
        ("the server http://h:80/v1. Look (see https://h/x).", "the server …. Look (see …)."),
        ("no route to 10.0.0.1:80, localhost:9 or [::1]:80", "no route to …, … or …"),
        ("at 12:30:45 version 1.2.3 of a:b gave 4:5", "at 12:30:45 version 1.2.3 of a:b gave 4:5"),
        ("pyrag/default has 'a/b' at line 3:4", "pyrag/default has 'a/b' at line 3:4"),
    ],
)
def test_addresses_are_struck_out_of_messages(said: str, shown: str) -> None:
    assert public_text(said) == shown
