"""Request options on their way from flags, file and environment to the wire, the cache and the trace."""

from __future__ import annotations

import json
from pathlib import Path

from pyrag import PyRAG
from pyrag.llm.cache import request_key
from pyrag.llm.protocol import Message, Sampling
from tests.server.conftest import ModelServer, Run, role_in

QUESTION = "Who is Jed Hoyer?"


async def test_options_reach_their_role_and_no_other(server: ModelServer) -> None:
    request = {
        "seed": 7,
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
        "plan": {"temperature": 0.7, "max_tokens": 99, "extra_body": {"reasoning_effort": "low"}},
    }
    async with PyRAG(f"openai:tiny@{server.url}", request=request, stream=False) as rag:
        trace = await rag.aask(QUESTION)
    assert trace.answer.text == "an executive"
    assert trace.config["request"] == request
    assert {role_in(body) for body in server.bodies} == {"decompose", "plan", "answer"}
    for body in server.bodies:
        assert (body["seed"], body["chat_template_kwargs"]) == (7, {"enable_thinking": False})
        sent = (body["temperature"], body["max_tokens"], body.get("reasoning_effort"))
        assert sent == ((0.7, 99, "low") if role_in(body) == "plan" else (0.0, 1024, None))


def test_flags_environment_and_file_add_up(server: ModelServer, pyrag: Run, tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text("[request]\ntemperature = 0.1\n[request.plan]\ntemperature = 0.3\n")
    flags = ("--request", "plan.extra_body.reasoning_effort=low", "--request", "answer.max_tokens=77")
    ask = ("ask", QUESTION, "--llm", f"openai:tiny@{server.url}", "--config", str(file), *flags, "--json")
    done = pyrag(*ask, PYRAG_REQUEST="plan.temperature=0.5")
    assert done.returncode == 0, done.stderr
    sent = {role_in(body): body for body in server.bodies}
    assert (sent["plan"]["temperature"], sent["plan"]["reasoning_effort"]) == (0.5, "low")
    assert (sent["answer"]["temperature"], sent["answer"]["max_tokens"]) == (0.1, 77)
    assert json.loads(done.stdout)["answer"] == "an executive"


def test_a_wrong_flag_ends_in_one_sentence(pyrag: Run) -> None:
    done = pyrag("ask", QUESTION, "--request", "plan.temprature=1")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean 'temperature'" in done.stderr


async def test_the_cache_tells_options_apart(server: ModelServer, tmp_path: Path) -> None:
    cache = str(tmp_path / "replies.sqlite")
    counts = []
    for request in ({}, {}, {"seed": 1}, {"extra_body": {"top_p": 0.5}}, {"extra_body": {"top_p": 0.5}}):
        server.bodies.clear()
        async with PyRAG(f"openai:tiny@{server.url}", request=request, cache=cache) as rag:
            assert (await rag.aask(QUESTION)).answer.text == "an executive"
        counts.append(len(server.bodies))
    assert [bool(count) for count in counts] == [True, False, True, True, False]


def test_replies_kept_before_extra_fields_are_found() -> None:
    said = (Message("user", "Say it."),)
    assert request_key("m", Sampling(), said).hex().startswith("887690ac9a95487a")
