"""Keys planted in the environment and in addresses appear in no output, whatever the server does with them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag._io.http.address import secrets_of_headers
from pyrag._io.redaction import Redactor
from pyrag.errors import ConfigError
from pyrag.llm.clients.headers import with_headers
from pyrag.llm.clients.openai import key_from_environment
from pyrag.settings import Settings, make_settings
from pyrag.trace.codec import to_json
from tests.server.conftest import ModelServer, Run

QUESTION = "Who is Jed Hoyer?"
KEY = "sk-planted-0123456789abcdef"
OTHER = "sk-other-9876543210fedcba"
PASSWORD = "planted-pass-42"
TOKEN = "planted-token-43"


Refuse = Callable[[dict[str, Any]], tuple[int, Any] | None]


def echo(status: int) -> Callable[[dict[str, Any]], tuple[int, Any]]:
    """A server that says the key back."""
    return lambda body: (status, {"error": {"message": f"bad key {KEY}: Bearer {KEY}", "param": KEY}})


def failing_in_the_middle(body: dict[str, Any]) -> tuple[int, Any] | None:
    """A server that says the key back in the middle of a stream."""
    return (0, f"data: {json.dumps(echo(500)(body)[1])}\n\n") if body.get("stream") else None


@pytest.mark.parametrize("status", [401, *(pytest.param(status, marks=pytest.mark.slow) for status in (200, 500))])
def test_planted_keys_appear_nowhere(server: ModelServer, pyrag: Run, tmp_path: Path, status: int) -> None:
    if status != 200:
        server.refuse = echo(status)
    address = server.url.replace("http://", f"http://user:{PASSWORD}@") + f"?token={TOKEN}"
    env = {"PYRAG_API_KEY": KEY, "OPENAI_API_KEY": OTHER}
    outputs = []
    for llm in (f"openai:tiny@{server.url}", f"openai:tiny@{address}"):
        files = ("--trace", "t.jsonl", "--record", "r.jsonl")
        for more in (("--json", *files), ("--debug",), ("--cache",)):
            done = pyrag("ask", QUESTION, "--llm", llm, *more, XDG_CACHE_HOME=str(tmp_path), **env)
            outputs += [done.stdout, done.stderr]
        for command in ("doctor", "models"):
            done = pyrag(command, "--llm", llm, "--json", **env)
            outputs += [done.stdout, done.stderr]
    assert f"Bearer {KEY}" in server.keys
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 2
    assert any(outputs)
    for text in [*(output.encode() for output in outputs), *written]:
        for secret in (KEY, OTHER, PASSWORD, TOKEN):
            assert secret.encode() not in text


@pytest.mark.parametrize("refuse", [echo(401), echo(200), failing_in_the_middle])
async def test_reprs_traces_and_logs_of_the_library(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refuse: Refuse
) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    monkeypatch.setenv("PYRAG_API_KEY", KEY)
    server.refuse = refuse
    address = server.url.replace("http://", f"http://user:{PASSWORD}@") + f"?token={TOKEN}"
    shown = []
    for llm in (f"openai:tiny@{server.url}", f"openai:tiny@{address}"):
        async with PyRAG(llm, plan_llm=llm) as rag:
            trace = await rag.aask(QUESTION, keep=True)
            assert trace.error
            assert f"Bearer {KEY}" in (server.keys[-1] or "") or "user" in llm
            shown += [
                caplog.text,
                repr(rag),
                repr(rag.settings),
                repr(rag.engines),
                repr(trace),
                to_json(trace).decode(),
            ]
    for text in shown:
        for secret in (KEY, PASSWORD, TOKEN):
            assert secret not in text


def test_settings_show_everything_else() -> None:
    assert "topk=7" in repr(Settings(topk=7))
    settings = make_settings({"retriever": "http://u:p@h:1/x?k=v", "llm": "openai:m@https://a@b/v1"})
    assert "retriever='http://h:1/x'" in repr(settings)
    assert "llm='openai:m@https://b/v1'" in repr(settings)


def test_key_file(tmp_path: Path, server: ModelServer, pyrag: Run) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    assert key_from_environment({"PYRAG_API_KEY_FILE": str(file)}) == KEY
    assert key_from_environment({"PYRAG_API_KEY_FILE": str(file), "OPENAI_API_KEY": "other"}) == "other"
    ask = ("ask", QUESTION, "--llm", f"openai:tiny@{server.url}")
    done = pyrag(*ask, PYRAG_API_KEY_FILE=str(file))
    assert done.returncode == 0, done.stderr
    assert set(server.keys) == {f"Bearer {KEY}"}
    for mode in (0o640, 0o604, 0o660):
        file.chmod(mode)
        with pytest.raises(ConfigError, match=rf"mode {mode:o}\): run chmod 600") as refused:
            key_from_environment({"PYRAG_API_KEY_FILE": str(file)})
        assert KEY not in str(refused.value)
    assert pyrag(*ask, PYRAG_API_KEY_FILE=str(file)).returncode == 2
    file.chmod(0o600)
    file.write_text(" \n")
    with pytest.raises(ConfigError, match="is empty"):
        key_from_environment({"PYRAG_API_KEY_FILE": str(file)})
    with pytest.raises(ConfigError, match="cannot read the key file"):
        key_from_environment({"PYRAG_API_KEY_FILE": str(tmp_path / "none")})


def test_own_headers_reach_the_server_and_no_output(tmp_path: Path, server: ModelServer, pyrag: Run) -> None:
    file = tmp_path / "headers"
    file.write_text(f"api-key: {KEY}\n\nX-Team: search \n")
    file.chmod(0o600)
    server.refuse = echo(401)
    ask = ("ask", QUESTION, "--llm", f"openai:tiny@{server.url}", "--trace", "t.jsonl")
    done = pyrag(*ask, PYRAG_HEADERS_FILE=str(file), PYRAG_HEADERS="X-Title: My notes", OPENAI_API_KEY=OTHER)
    sent = server.headers[-1]
    assert (sent["api-key"], sent["X-Team"], sent["X-Title"]) == (KEY, "search", "My notes")
    assert sent["Authorization"] == f"Bearer {OTHER}"
    for text in (done.stdout, done.stderr, (tmp_path / "t.jsonl").read_text()):
        assert KEY not in text
    file.chmod(0o644)
    refused = pyrag(*ask, PYRAG_HEADERS_FILE=str(file))
    assert refused.returncode == 2
    assert "run chmod 600" in refused.stderr


@pytest.mark.parametrize("value", [f"{KEY} for search", f"id={KEY}; theme=dark", f'"{KEY}", x', f"Bearer {KEY}"])
def test_keys_anywhere_in_a_header_are_redacted(value: str) -> None:
    redactor = Redactor(secrets_of_headers({"Cookie": value}))
    text = f"the Bearer was refused: {KEY}"
    assert redactor.content(text) == redactor.message(text) == "the Bearer was refused: …"
    assert KEY.encode() not in redactor.body(text.encode())


def test_own_authorization_replaces_the_key() -> None:
    own = {"PYRAG_HEADERS": f"authorization: Basic {TOKEN}"}
    assert with_headers(KEY, own) == {"authorization": f"Basic {TOKEN}"}
    assert with_headers(KEY, {}) == {"Authorization": f"Bearer {KEY}"}
    assert with_headers(None, {}) == {}


def test_a_header_is_sent_once_in_its_last_spelling(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("X-Team: a")
    file.chmod(0o600)
    assert with_headers(None, {"PYRAG_HEADERS_FILE": str(file), "PYRAG_HEADERS": "x-team: b"}) == {"x-team": "b"}


def test_a_headers_file_of_an_unknown_user_is_an_error() -> None:
    with pytest.raises(ConfigError, match="cannot read the headers file ~nobody-here/h"):
        with_headers(None, {"PYRAG_HEADERS_FILE": "~nobody-here/h"})


@pytest.mark.parametrize(
    "line", ["api-key", f"api key: {KEY}", "X-Empty:", f": {KEY}", "Host: other", "content-length: 5", f"X-A: \0{KEY}"]
)
def test_malformed_headers_are_refused_without_their_values(line: str) -> None:
    with pytest.raises(ConfigError, match=r"^line 2 of PYRAG_HEADERS ") as refused:
        with_headers(None, {"PYRAG_HEADERS": f"X-Team: search\n{line}"})
    assert KEY not in str(refused.value)


def test_the_error_of_a_bad_address_keeps_its_password(pyrag: Run) -> None:
    for llm in (f"openai:m@http://user:{PASSWORD}@host:port/v1", f"openai:m@user:{PASSWORD}@host:80/v1"):
        done = pyrag("ask", QUESTION, "--llm", llm)
        assert done.returncode == 2
        assert json.dumps(done.stdout + done.stderr).count(PASSWORD) == 0
