"""`vllm:`: the engine in this process, on the tiny model that the server serves too."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ContextLengthError, DataError, PermanentServiceError
from pyrag.llm.clients.local import LocalChat
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message, Sampling
from pyrag.llm.schema import fits
from pyrag.llm.spec import ModelOptions, open_chat_model
from tests.llm.local_models import ASKED, PATTERN, VERDICT, WINDOW, TinyModel
from tests.vllm.conftest import KEY, PATIENCE, Served, ask, until

pytestmark = pytest.mark.filterwarnings("default")

OPTIONS = "dtype=float32,eager=true"
GREEDY = Sampling(max_tokens=24)


def opened(spec: str) -> LocalChat:
    model = open_chat_model(spec, ModelOptions(timeout=PATIENCE))
    assert isinstance(model, LocalChat)
    return model


@pytest.fixture(scope="module")
def clients(tiny: TinyModel) -> Iterator[tuple[LocalChat, LocalChat]]:
    """The model and its adapter, in one engine that lives as long as this module's tests."""
    spec = f"vllm:{tiny.folder},{OPTIONS}"
    both = opened(spec), opened(f"{spec},adapter=planner={tiny.adapter}")
    asyncio.run(both[0].start())
    yield both
    for client in both:
        asyncio.run(client.aclose())
    assert not children()


@pytest.fixture
def chat(clients: tuple[LocalChat, LocalChat]) -> LocalChat:
    return clients[0]


def children() -> list[str]:
    """The engine's processes below this one, those that have ended but were not waited for included."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    parents = {pid: (parent, args) for pid, parent, args in (line.split(None, 2) for line in listed.splitlines())}
    return [args for parent, args in parents.values() if parent == str(os.getpid()) and "VLLM" in args]


async def test_it_writes_what_the_server_writes(served: Served, clients: tuple[LocalChat, LocalChat]) -> None:
    for name, client in zip(("tiny", "planner"), clients, strict=True):
        server = OpenAIChat(name, served.url, api_key=KEY, timeout=PATIENCE)
        for sampling in (GREEDY, Sampling(temperature=1.0, max_tokens=24, seed=7)):
            ours, theirs = await client.complete(ASKED, sampling), await server.complete(ASKED, sampling)
            assert ours == theirs
        await server.aclose()


async def test_greedy_text_is_that_of_transformers(tiny: TinyModel, chat: LocalChat) -> None:
    plain = opened(f"transformers:{tiny.folder},dtype=float32,device=cpu")
    assert (await chat.complete(ASKED, GREEDY)).text == (await plain.complete(ASKED, GREEDY)).text
    await plain.aclose()


async def test_pieces_of_a_stream_are_the_reply(chat: LocalChat) -> None:
    pieces: list[str] = []
    reply = await chat.stream(ASKED, GREEDY, pieces.append)
    assert "".join(pieces) == reply.text == (await chat.complete(ASKED, GREEDY)).text
    assert len(pieces) > 3


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_schemas_and_patterns_are_enforced(chat: LocalChat, seed: int) -> None:
    assert fits((await chat.complete(ASKED, Sampling(1.0, 400, (), seed, VERDICT))).text, VERDICT)
    reply = await chat.complete(ASKED, Sampling(1.0, 400, (), seed, pattern=PATTERN))
    assert re.fullmatch(PATTERN, reply.text)


async def test_stop_strings(chat: LocalChat) -> None:
    whole = (await chat.complete(ASKED, GREEDY)).text
    reply = await chat.complete(ASKED, Sampling(max_tokens=24, stop=(whole[10:13],)))
    assert reply.text == whole[: whole.index(whole[10:13])]


async def test_a_prompt_that_is_too_long(chat: LocalChat) -> None:
    with pytest.raises(ContextLengthError, match=rf"window of {WINDOW} tokens, but the prompt takes \d+"):
        await chat.complete((Message("user", "book " * WINDOW),), GREEDY)
    assert (await chat.complete(ASKED, GREEDY)).completion_tokens == 24  # it lives


async def test_cancelling_drops_the_request(chat: LocalChat) -> None:
    runner: Any = await chat.runner()
    requests = runner._engine.output_processor
    task = asyncio.create_task(chat.complete(ASKED, Sampling(max_tokens=WINDOW - 100)))
    await until(lambda: requests.get_num_unfinished_requests() == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: requests.get_num_unfinished_requests() == 0, seconds=2)


def test_it_may_be_asked_from_any_event_loop(clients: tuple[LocalChat, LocalChat]) -> None:
    texts = {asyncio.run(clients[0].complete(ASKED, GREEDY)).text for _ in range(2)}
    assert len(texts) == 1


async def test_an_adapter_that_came_too_late(
    tiny: TinyModel, clients: tuple[LocalChat, LocalChat], tmp_path: Path
) -> None:
    for file in tiny.adapter.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = (tmp_path / "adapter_config.json").read_text()
    (tmp_path / "adapter_config.json").write_text(config.replace('"r": 4', '"r": 64'))
    late = opened(f"vllm:{tiny.folder},{OPTIONS},adapter=late={tmp_path}")
    with pytest.raises(PermanentServiceError, match="without room for the adapter late of rank 64"):
        await late.complete(ASKED)
    await late.aclose()


def test_ask_ends_honestly(tiny: TinyModel, tmp_path: Path) -> None:
    logs = set(Path(tempfile.gettempdir()).glob("pyrag-vllm-*.log"))
    spec = f"vllm:{tiny.folder},{OPTIONS},max_model_len=4096"  # a random model writes until its window is full
    planner = f"{spec},adapter=planner={tiny.adapter}"
    done = ask(tmp_path, "--llm", spec, "--plan-llm", planner, "--joint", "--json")
    trace = json.loads(done.stdout)
    assert (trace["answer"], done.returncode) == ("unknown", 1), done.stdout
    assert trace["error"]["kind"] == "bad_output"
    assert "Traceback" not in done.stderr
    assert set(Path(tempfile.gettempdir()).glob("pyrag-vllm-*.log")) == logs


def test_a_model_that_cannot_be_loaded_is_one_sentence(tiny: TinyModel, tmp_path: Path) -> None:
    for file in tiny.folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    done = ask(tmp_path, "--llm", f"vllm:{tmp_path},{OPTIONS}")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("pyrag: ")]
    assert len(told) == 1
    assert "could not be loaded; its log is " in told[0]
    assert "weights" in told[0]
    Path(told[0].partition("its log is ")[2].partition(" ")[0]).unlink()


@pytest.mark.parametrize("folder", ["/nowhere/model", "{empty}"])
def test_folders_that_hold_no_model(tmp_path: Path, folder: str) -> None:
    with pytest.raises(DataError, match="no model"):
        opened(f"vllm:{folder.format(empty=tmp_path)}")
