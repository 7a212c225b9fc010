"""Our client against a real vLLM server, beside the official client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag.agents.context_window import ContextWindow, WindowedAnswerer
from pyrag.agents.llm import LLMAnswerer
from pyrag.agents.prompts import load_prompts
from pyrag.errors import ContextLengthError, PermanentServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.context import token_counter
from pyrag.llm.protocol import Message, Sampling
from pyrag.llm.schema import fits, response_format
from pyrag.trace.model import Passage
from tests.llm.local_models import ASKED, PATTERN, VERDICT, WINDOW, TinyModel
from tests.vllm.conftest import KEY, PATIENCE, Recorder, Run, Served, ask, until

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.filterwarnings("default")

SAMPLED = Sampling(temperature=1.0, max_tokens=400, seed=3)
ENDLESS = Sampling(max_tokens=WINDOW - 100)


@pytest.fixture
async def chat(served: Served) -> AsyncIterator[OpenAIChat]:
    model = OpenAIChat("tiny", served.url, api_key=KEY, timeout=PATIENCE)
    yield model
    await model.aclose()


def said(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


@pytest.mark.parametrize(
    ("sampling", "theirs"),
    [
        (Sampling(max_tokens=16), {"temperature": 0.0, "max_tokens": 16}),
        (
            Sampling(temperature=0.7, max_tokens=30, stop=("x", "\n"), seed=5),
            {"temperature": 0.7, "max_tokens": 30, "stop": ["x", "\n"], "seed": 5},
        ),
        (
            Sampling(1.0, 400, (), 3, VERDICT),
            {"temperature": 1.0, "max_tokens": 400, "seed": 3, "response_format": response_format(VERDICT)},
        ),
        (
            Sampling(1.0, 400, (), 3, pattern=PATTERN),
            {
                "temperature": 1.0,
                "max_tokens": 400,
                "seed": 3,
                "extra_body": {"structured_outputs": {"regex": PATTERN}},
            },
        ),
    ],
    ids=["greedy", "sampled", "schema", "pattern"],
)
async def test_the_official_client_sends_and_gets_the_same(
    recorder: Recorder, sampling: Sampling, theirs: dict[str, Any]
) -> None:
    chat = OpenAIChat("tiny", recorder.url, api_key=KEY, timeout=PATIENCE)
    ours = await chat.complete(ASKED, sampling)
    await chat.aclose()
    async with openai.AsyncOpenAI(base_url=recorder.url, api_key=KEY, max_retries=0) as official:
        reply = await official.chat.completions.create(model="tiny", messages=said(ASKED), **theirs)
    assert recorder.bodies[0] == recorder.bodies[1]
    assert ours.text == reply.choices[0].message.content
    assert ours.finish_reason == reply.choices[0].finish_reason
    assert reply.usage
    assert (ours.prompt_tokens, ours.completion_tokens) == (reply.usage.prompt_tokens, reply.usage.completion_tokens)


async def test_a_stream_is_the_reply_in_pieces(served: Served, chat: OpenAIChat) -> None:
    pieces: list[str] = []
    reply = await chat.stream(ASKED, Sampling(max_tokens=32), pieces.append)
    whole = await chat.complete(ASKED, Sampling(max_tokens=32))
    assert "".join(pieces) == reply.text == whole.text
    assert len(pieces) > 3
    assert (reply.prompt_tokens, reply.completion_tokens) == (whole.prompt_tokens, whole.completion_tokens)
    async with openai.AsyncOpenAI(base_url=served.url, api_key=KEY, max_retries=0) as official:
        stream = await official.chat.completions.create(
            model="tiny", messages=said(ASKED), max_tokens=32, temperature=0, stream=True
        )
        theirs = [one.choices[0].delta.content async for one in stream if one.choices]
    assert "".join(piece or "" for piece in theirs) == reply.text


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_schemas_and_patterns_are_enforced(chat: OpenAIChat, seed: int) -> None:
    decided = await chat.complete(ASKED, Sampling(1.0, 400, (), seed, VERDICT))
    assert fits(decided.text, VERDICT)
    reply = await chat.complete(ASKED, Sampling(1.0, 400, (), seed, pattern=PATTERN))
    assert re.fullmatch(PATTERN, reply.text)
    assert (decided.note, reply.note) == ("", "")
    free = await chat.complete(ASKED, Sampling(1.0, 60, (), seed))
    assert not fits(free.text, VERDICT)  # it is the server that sees to it
    assert not re.fullmatch(PATTERN, free.text)


async def test_an_adapter_by_its_name(served: Served, chat: OpenAIChat) -> None:
    planner = OpenAIChat("planner", served.url, api_key=KEY, timeout=PATIENCE)
    sampling = Sampling(max_tokens=24)
    assert (await planner.complete(ASKED, sampling)).text != (await chat.complete(ASKED, sampling)).text
    offered = {model.id: model for model in await chat.offered()}
    assert offered.keys() == {"tiny", "planner"}
    assert offered["planner"].parent == "tiny"
    assert [await model.context_tokens() for model in (chat, planner)] == [WINDOW] * 2
    await planner.aclose()


@pytest.mark.parametrize(
    ("model", "key", "status", "said"),
    [
        ("none", KEY, 404, r"The model `none` does not exist.*: check the model's name"),
        ("tiny", None, 401, r"Unauthorized.*: set PYRAG_API_KEY|set OPENAI_API_KEY"),
        ("tiny", "sk-wrong", 401, r"Unauthorized.*: set PYRAG_API_KEY|set OPENAI_API_KEY"),
    ],
)
async def test_refusals(served: Served, model: str, key: str | None, status: int, said: str) -> None:
    chat = OpenAIChat(model, served.url, api_key=key, timeout=PATIENCE)
    with pytest.raises(PermanentServiceError, match=said) as refused:
        await chat.complete(ASKED)
    await chat.aclose()
    assert refused.value.status == status
    assert "\n" not in str(refused.value)
    assert KEY not in str(refused.value)


async def test_too_long_a_prompt_is_told_from_other_refusals(chat: OpenAIChat) -> None:
    with pytest.raises(ContextLengthError):
        await chat.complete((Message("user", "document " * WINDOW),), Sampling(max_tokens=8))
    whole = (await chat.complete(ASKED, Sampling(max_tokens=24))).text
    stop = whole[10:13]
    reply = await chat.complete(ASKED, Sampling(max_tokens=2 * WINDOW, stop=(stop,)))  # a limit is no prompt
    assert (reply.text, reply.finish_reason) == (whole[: whole.index(stop)], "stop")


async def test_documents_are_trimmed_once_when_the_server_says_too_long(recorder: Recorder, tiny: TinyModel) -> None:
    count = token_counter(str(tiny.folder))
    sentence = "The document says who wrote the book. "
    tokens = (count(sentence * 100) - count(sentence)) / 99  # the tokenizer learned from today's prompts
    text = sentence * int((1.5 * WINDOW - 1250) / 10 / tokens)
    passages = [Passage(str(number), "Book", text, 1 / (number + 1)) for number in range(10)]
    assert WINDOW < sum(count(passage.text) for passage in passages) < 2 * WINDOW - 2500
    chat = OpenAIChat("tiny", recorder.url, api_key=KEY, timeout=PATIENCE)
    answerer = LLMAnswerer(chat, load_prompts(), Sampling(max_tokens=64))
    reading = await WindowedAnswerer(answerer, ContextWindow(count=count)).answer("Who wrote the book?", passages)
    await chat.aclose()
    assert "because the server said that the prompt was too long" in reading.note
    assert "error" in recorder.replies[0]
    assert all("choices" in reply for reply in recorder.replies[1:])
    sent = [body["messages"][1]["content"].count("[Doc ") for body in recorder.bodies[:2]]
    assert sent[0] == len(passages) > sent[1] > 0


@pytest.mark.parametrize("streaming", [False, True])
async def test_cancelling_reaches_the_server(served: Served, chat: OpenAIChat, streaming: bool) -> None:
    written, ended = (served.counted(f"vllm:{metric}_total") for metric in ("generation_tokens", "request_success"))
    work = chat.stream(ASKED, ENDLESS, lambda _: None) if streaming else chat.complete(ASKED, ENDLESS)
    task = asyncio.create_task(work)
    await until(lambda: served.counted("vllm:num_requests_running") == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: served.counted("vllm:num_requests_running") == 0)
    assert served.counted("vllm:generation_tokens_total") - written < ENDLESS.max_tokens
    assert served.counted("vllm:request_success_total") == ended


async def test_many_at_once_are_computed_together(served: Served, chat: OpenAIChat) -> None:
    sampling = Sampling(max_tokens=200)
    await chat.complete(ASKED, sampling)
    start = time.perf_counter()
    alone = await chat.complete(ASKED, sampling)
    one = time.perf_counter() - start
    tasks = [asyncio.create_task(chat.complete(ASKED, sampling)) for _ in range(16)]
    most = 0.0
    while not all(task.done() for task in tasks):
        most = max(most, await asyncio.to_thread(served.counted, "vllm:num_requests_running"))
    print(f"one {one:.2f} s, sixteen {time.perf_counter() - start - one:.2f} s, {most:g} together")
    assert most > 1
    assert {task.result().completion_tokens for task in tasks} == {alone.completion_tokens}


async def test_agents_long_prompts_are_computed_once(served: Served, chat: OpenAIChat) -> None:
    system = Message("system", load_prompts().render("plan.system"))
    hits = served.counted("vllm:prefix_cache_hits_total")
    for number in range(3):
        await chat.complete((system, Message("user", f"Question {number}?")), Sampling(max_tokens=4))
    blocks = served.counted("vllm:prefix_cache_hits_total") - hits
    assert blocks >= 128 * 2  # tokens; a block on the CPU has 128


def test_models_and_doctor_on_the_command_line(served: Served, pyrag: Run) -> None:
    spec = f"openai:planner@{served.url}"
    listed = pyrag("models", spec, PYRAG_API_KEY=KEY).stdout.splitlines()
    assert listed[0].startswith("tiny\t")
    assert listed[1].startswith("planner\tadapter of tiny")
    assert "offers tiny, planner" in pyrag("doctor", "--llm", spec, PYRAG_API_KEY=KEY).stdout


def test_ask_ends_honestly_and_tells_no_key(served: Served, tmp_path: Path) -> None:
    tiny, planner = (f"openai:{name}@{served.url}" for name in ("tiny", "planner"))
    keys = {"PYRAG_API_KEY": KEY, "OPENAI_API_KEY": "sk-other-42-planted", "HF_TOKEN": "hf_planted_43"}
    files = ("--joint", "--json", "--trace", "t.json", "--record", "r.jsonl")
    ends = ("--request", "extra_body.stop=e")  # else a random model writes until its window is full
    done = ask(tmp_path, "--llm", tiny, "--plan-llm", planner, *files, *ends, **keys)
    assert done.stdout, done.stderr
    trace = json.loads(done.stdout)
    assert (trace["answer"], done.returncode) == ("unknown", 1), done.stdout
    assert trace["error"]["kind"] == "bad_output"
    assert "wrote no program" in trace["error"]["message"]
    assert "Traceback" not in done.stderr
    written = [done.stdout, done.stderr, served.log.read_text(errors="replace")]
    written += [file.read_text(errors="replace") for file in tmp_path.iterdir()]
    assert len(written) == 5
    for text in (*written, *command_lines()):
        for key in keys.values():
            assert key not in text


def command_lines() -> list[str]:
    """Those of all processes, as any user of the machine can read them."""
    own = str(os.getpid())
    files = [one / "cmdline" for one in Path("/proc").iterdir() if one.name.isdigit() and one.name != own]
    found = []
    for file in files:
        try:
            found.append(file.read_bytes().decode(errors="replace"))
        except OSError:  # it has ended
            continue
    assert any("serve" in line and "planner=" in line for line in found)
    return found
