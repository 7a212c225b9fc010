"""Requests that mean harm, and a corpus that does: each gets one clear sentence, or text that is only text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig
from tests.server.live import Live, live

HOSTILE = "The mill was founded by <img src=x onerror=alert(1)> Ann.\u202e\u2028\x07 data: x \U0001f9d1"
SLOW = (b"", b"GET /healthz HTTP/1.1\r\nHost: local", b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)
STATE = ("/health", "/v1/traces", "/openapi.json", "/metrics", "/readyz", "/v1/options")
QUESTION = "Who founded the mill?"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("secret-place")
    (folder / "notes").mkdir()
    (folder / "notes/mill.md").write_text(HOSTILE)
    update_index([folder / "notes"], folder / "ix")
    config = ServerConfig(
        indexes={"notes": str(folder / "ix")}, traces=folder / "traces.sqlite", max_body=1 << 16, header_timeout=0.5,
        body_timeout=0.5,
    )  # fmt: skip
    with live(config) as one:
        yield one


def ask(question: str) -> bytes:
    return json.dumps({"question": question}).encode()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "the body"),
        (b"{", "the body cannot be read"),
        (b"\xff\xfe", "the body cannot be read"),
        (b'{"question": NaN}', "the body cannot be read"),
        (b'{"question": "x", "deadline": 1e999}', "the body cannot be read"),
        (b'{"question": "\\ud800"}', "the body cannot be read"),
        (b'{"question": "x", "question": "y"}', "it names 'question' twice"),
        (b'{"question": ' + b"[" * 30_000, "the body is nested too deeply"),
        (b'{"question": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, "the body is nested too deeply"),
        (b'{"question": "x", "deadline": ' + b"1" * 5000 + b"}", "the body cannot be read"),
        (b'{"question": 1}', "question: "),
        (b'{"question": "x", "stream": "yes"}', "stream: "),
        (b'{"question": "x", "index": "\\u0000\\u202e"}', "there is no index"),
        (b'"x"', "the body"),
        (ask("\u202e \u200b"), "empty"),
        (ask("x" * 60_000), "at most"),
    ],
)
def test_bodies_that_are_refused(served: Live, body: bytes, says: str) -> None:
    reply = served.send("/v1/ask", body)
    assert 400 <= reply.status < 500
    assert says in reply.message
    assert not any(ord(letter) < 32 or letter in "\u202e\u2028" for letter in reply.message)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/ask", {"Content_Type": "text/plain"}, 415),
        ("/v1/ask", {"Content_Encoding": "gzip"}, 415),
        ("/v1/responses", {"Content_Type": "multipart/form-data"}, 415),
        ("/v1/ask", {"Origin": "null"}, 403),
        ("/v1/ask", {"Host": "evil.example"}, 403),
        ("/nowhere", {}, 404),
    ],
)
def test_requests_of_other_kinds_are_refused(served: Live, path: str, headers: dict[str, str], status: int) -> None:
    reply = served.send(path, ask("x"), **headers)
    assert (reply.status, bool(reply.message)) == (status, True)
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_a_chunked_body_without_length_is_bounded(served: Live) -> None:
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    said = served.raw(head + (b"1000\r\n" + b" " * 0x1000 + b"\r\n") * 16 + b"1\r\n \r\n")
    assert said.startswith(b"HTTP/1.1 413")
    assert b"send less at once" in said


@pytest.mark.parametrize("slow", SLOW, ids=["silent", "half", "large"])
def test_a_head_that_does_not_end_is_cut(served: Live, slow: bytes) -> None:
    assert b"200" not in served.raw(slow)


def test_a_second_head_that_does_not_end_is_cut(served: Live) -> None:
    connection = HTTPConnection(*served.address, timeout=120)
    with closing(connection):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
        connection.sock.sendall(b"GET /healthz HTT")
        assert connection.sock.recv(1 << 16) == b""


def test_a_body_that_does_not_arrive_gets_408(served: Live) -> None:
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{"
    assert served.raw(head).startswith(b"HTTP/1.1 408")


def test_hostile_passages_stay_text_in_every_reply(served: Live) -> None:
    reply = served.send("/v1/ask", {"question": QUESTION, "stream": True})
    blocks = reply.body.decode().strip().split("\n\n")
    assert all(block.split("\n")[0].startswith(("event: ", ":")) and block.count("\n") == 1 for block in blocks)
    last = json.loads(blocks[-1].split("\n")[1].removeprefix("data: "))
    assert "<img src=x onerror=alert(1)>" in last["citations"][0]["text"]
    assert "\u202e" in last["citations"][0]["text"]
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_no_reply_holds_a_path_of_the_server(served: Live) -> None:
    asked = served.send("/v1/ask", {"question": QUESTION, "include_trace": True})
    chat = {"model": "pyrag", "messages": [{"role": "user", "content": QUESTION}]}
    replies = [
        asked,
        served.send("/v1/ask", {"question": QUESTION, "stream": True, "include_trace": True}),
        served.send("/v1/chat/completions", chat),
        served.send("/v1/responses", {"model": "pyrag", "input": QUESTION}),
        served.send("/retrieve", {"queries": ["mill"], "return_scores": True}),
        *(served.send(path) for path in STATE),
        served.send(f"/v1/traces/{asked.json['id']}"),
    ]
    assert [reply.status for reply in replies] == [200] * len(replies)
    assert [reply for reply in replies if b"secret-place" in reply.body] == []
    assert asked.json["citations"][0]["source"] == "mill.md"


def test_a_folder_that_goes_away_is_said_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A zebra lives in the zoo.")
    update_index([tmp_path / "a.md"], tmp_path / "ix")
    with live(ServerConfig(indexes={"zoo": str(tmp_path / "ix")})) as one:
        assert one.send("/readyz").status == 200
        (tmp_path / "ix").rename(tmp_path / "moved")
        ready: Any = one.send("/readyz")
        assert (ready.status, ready.json["problems"]) == (503, ["the index zoo is missing"])
        assert one.send("/retrieve", {"queries": ["zebra"]}).json["result"][0]
        assert str(tmp_path).encode() not in one.send("/health").body
