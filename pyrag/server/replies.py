"""Helpers of the routes: what a caller may use, replies in JSON, and questions that end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import Request, Response

from pyrag.server.config import Access
from pyrag.server.errors import ApiError
from pyrag.server.guard import ACCESS
from pyrag.server.service import Accepted, Answered, cancel

EVENT_STREAM = "text/event-stream"


async def until_gone(request: Request, accepted: Sequence[Accepted]) -> list[Answered]:
    """Return what questions came to, in their order; cancel them if the client goes away first.

    Args:
        request: of the client.
        accepted: questions that are waiting or running.

    Raises:
        ApiError: a question was refused while it waited, or the client has gone.
    """
    tasks = [one.task for one in accepted]
    await wait_for(request, tasks)
    return [task.result() for task in tasks]


async def wait_for(request: Request, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for tasks; cancel them if the client goes away first.

    Args:
        request: of the client.
        tasks: their results and errors are left to the caller.

    Raises:
        ApiError: the client has gone.
    """
    gone: asyncio.Task[Any] = asyncio.create_task(_disconnected(request))
    every: asyncio.Task[Any] = asyncio.create_task(asyncio.wait(tasks))
    try:
        await asyncio.wait({gone, every}, return_when=asyncio.FIRST_COMPLETED)
        if not every.done():
            raise ApiError(499, "client_gone", "the client went away")
    finally:
        gone.cancel()
        every.cancel()
        await cancel(tasks)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def access_of(request: Request) -> Access:
    """Return what the caller may use."""
    found: Access = request.scope[ACCESS]
    return found


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a reply in JSON.

    Args:
        value: dataclasses and plain data.
        status: HTTP status.
        headers: further headers.
    """
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")
