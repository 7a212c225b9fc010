"""Search tools of real MCP servers as retrievers. `make test-mcp` runs it."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from pyrag import PyRAG
from pyrag.errors import PermanentServiceError, RetryableServiceError, ServiceError
from pyrag.retrieval.open import open_retriever
from pyrag.retrieval.protocol import Retriever
from tests.cli.conftest import COMMAND, environment
from tests.mcp.test_clients import served

pytestmark = pytest.mark.filterwarnings("default")  # the library's own deprecations

SERVER = Path(__file__).with_name("search_server.py")
MILL = "The mill was founded by Ann."


def spec_of(kind: str, options: str = "") -> str:
    return f"mcp+stdio:{shlex.join([sys.executable, str(SERVER), kind])}{options}"


@asynccontextmanager
async def opened(spec: str, seconds: float = 60.0) -> AsyncIterator[Retriever]:
    retriever = open_retriever(spec, timeout=seconds)
    try:
        yield retriever
    finally:
        await retriever.aclose()


async def test_structured_results_become_passages() -> None:
    async with opened(spec_of("structured")) as notes:
        (found,) = await notes.retrieve("who founded the mill", 1)
        assert (found.id, found.title, found.text, found.source) == ("mill", "The mill", MILL, "http://notes/mill")
        assert len(await notes.retrieve("the", 5)) == 2
        assert await notes.retrieve("nothing-of-this", 5) == []
        assert await notes.retrieve("  ", 5) == []


async def test_text_results_become_passages() -> None:
    async with opened(spec_of("text")) as notes:
        (found,) = await notes.retrieve("mill", 5)
        assert (found.text, found.title, found.source) == (MILL, "", notes.name)


def raw_spec(reply: str) -> str:
    return f"mcp+stdio:{shlex.join([sys.executable, str(SERVER.with_name('raw_search_server.py')), reply])}"


@pytest.mark.parametrize("reply", ["text", "plain", "empty", "noise"])
async def test_texts_count_whatever_schema_is_announced(reply: str) -> None:
    async with opened(raw_spec(reply)) as notes:
        assert [one.text for one in await notes.retrieve("mill", 5)] == [MILL]


def test_lines_that_are_no_messages_print_no_traceback() -> None:
    command = [*COMMAND, "ask", "Who founded the mill?", "--retriever", raw_spec("noise")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    assert "Ann" in done.stdout
    assert "Traceback" not in done.stderr


async def test_the_spec_chooses_among_several_tools() -> None:
    async with opened(spec_of("both", "#tool=search_notes")) as notes:
        assert [one.id for one in await notes.retrieve("mill", 5)] == ["mill"]
    async with opened(spec_of("both", "#tool=find")) as notes:
        with pytest.raises(PermanentServiceError, match="has no tool 'find'"):
            await notes.retrieve("mill", 5)


async def test_one_process_stays_and_a_crash_starts_another() -> None:
    async with opened(spec_of("structured")) as notes:
        first = (await notes.retrieve("process", 1))[0].text.split()[0]
        assert (await notes.retrieve("process", 1))[0].text.split()[0] == first
        with pytest.raises(RetryableServiceError, match=r"ended while it searched .*the notes are on fire"):
            await notes.retrieve("crash", 1)
        found = await asyncio.gather(*(notes.retrieve("process", 1) for _ in range(3)))
        again = {one[0].text.split()[0] for one in found}
        assert len(again) == 1
        assert again != {first}


async def test_variables_reach_a_command_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with opened(spec_of("structured", "#env=NOTES_KEY")) as notes:
        (found,) = await notes.retrieve("process", 1)
        assert "'NOTES_KEY'" in found.text
        assert "OPENAI_API_KEY" not in found.text


async def test_failures_say_who_failed_and_why() -> None:
    async with opened(spec_of("structured")) as notes:
        with pytest.raises(ServiceError, match=r"the tool search_notes of mcp.stdio:.* failed"):
            await notes.retrieve("fail", 1)
        assert len(await notes.retrieve("mill", 1)) == 1
    async with opened(spec_of("silent")) as notes:
        with pytest.raises(RetryableServiceError, match=r"gave no connection .it said: no notes here"):
            await notes.retrieve("mill", 1)
    async with opened("mcp+stdio:/no/such/command") as notes:
        with pytest.raises(PermanentServiceError, match="cannot be started"):
            await notes.retrieve("mill", 1)
    async with opened("mcp+http:http://127.0.0.1:9/mcp") as notes:
        with pytest.raises(RetryableServiceError, match="gave no connection"):
            await notes.retrieve("mill", 1)


async def test_a_slow_search_ends_in_time() -> None:
    async with opened(spec_of("structured"), seconds=0.5) as notes:
        with pytest.raises(RetryableServiceError, match=r"did not reply within 0\.5 s") as late:
            await notes.retrieve("sleep", 1)
        assert late.value.timed_out


async def test_a_server_of_ours_is_a_retriever_over_http() -> None:
    async with served() as url, opened(f"mcp+http:{url}#tool=search") as bundled:
        found = await bundled.retrieve("The Seventh Seal", 3)
        assert found[0].id == "the-seventh-seal"
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_questions_are_answered_over_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    command = shlex.join([*COMMAND, "mcp"])
    with PyRAG("embedded", retriever=f"mcp+stdio:{command}#env=PYTHONPATH", retrieve_timeout=60.0) as rag:
        for _ in range(2):
            trace = rag.ask("In which city was the director of The Seventh Seal born?")
            assert (trace.error, trace.answer.text) == (None, "Uppsala")
