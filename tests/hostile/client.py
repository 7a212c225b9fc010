"""Asks hostile servers, in a process of its own: `python client.py ROLE SECONDS TIMES URL …`, where TIMES
requests are made at once. Prints as JSON how each server ended, and the peak of the memory.

It is no test: its memory is its own, so that the peak which it reports is that of one client.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pyrag.errors import PyRAGError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.protocol import Message, Sampling
from pyrag.retrieval.embedders.openai_embeddings import OpenAIBackend
from pyrag.retrieval.http import HttpRetriever

ASKED = (Message("user", "Say it."),)

Ask = Callable[[Any], Any]


def role_of(role: str, url: str, seconds: float) -> tuple[Any, Ask]:
    """A client, and what it is asked."""
    patience = {"timeout": seconds, "total": seconds}
    if role == "retriever":
        return HttpRetriever(url, **patience), lambda client: client.retrieve("who?", 5)
    if role == "embedder":
        return OpenAIBackend("m", url, timeout=seconds), lambda client: client.encode(["text"])
    asks: dict[str, Ask] = {
        "model": lambda client: client.complete(ASKED),
        "streaming model": lambda client: client.stream(ASKED, Sampling(), lambda text: None),
        "models": lambda client: client.models(),
    }
    return OpenAIChat("m", url, retries=0, **patience), asks[role]


async def ask(role: str, url: str, seconds: float, times: int = 1) -> dict[str, str]:
    client, question = role_of(role, url, seconds)
    try:
        async with aclosing(client), asyncio.timeout(4 * seconds):  # the deadline of a question
            ends = await asyncio.gather(*(question(client) for _ in range(times)), return_exceptions=True)
            for end in ends:
                if isinstance(end, BaseException):
                    raise end
    except (PyRAGError, TimeoutError) as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": "", "message": ""}


def peak_megabytes() -> int:
    """Of this process since it was started; `ru_maxrss` would count that of the process which started it."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) >> 10


def main(role: str, seconds: str, times: str, *urls: str) -> dict[str, Any]:
    ends = [asyncio.run(ask(role, url, float(seconds), int(times))) for url in urls]
    return {"ends": ends, "peak": peak_megabytes()}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
