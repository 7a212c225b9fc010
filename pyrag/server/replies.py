"""Helpers for routes: the caller's rights, replies, and waiting for questions while the client is connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import msgspec
from fastapi import Request, Response

from pyrag.errors import PyRAGError
from pyrag.server.config import Access
from pyrag.server.errors import ApiError, from_pyrag
from pyrag.server.guard import ACCESS
from pyrag.server.service import cancel

T = TypeVar("T")

HEARTBEAT = 15.0  # seconds between the comments that keep a stream open
STILL_WORKING = b": still working\n\n"


async def until_gone(request: Request, tasks: Sequence[asyncio.Task[T]]) -> list[T]:
    """Return the results of tasks, in their order. If the client disconnects first, cancel them.

    Args:
        request: Request of the client.
        tasks: Questions or searches that are waiting or running.

    Raises:
        ApiError: A question was refused while it waited, or the client has disconnected.
        PyRAGError: A task failed.
    """
    await _wait_for(request, tasks)
    return [result_of(task) for task in tasks]


def result_of(task: asyncio.Task[T]) -> T:
    """Return the result of a finished task. Raises the task's error, or `ApiError` if the shutdown ended it."""
    if task.cancelled():
        raise ApiError(503, "shutting_down", "the server ended before the work was done: ask again", retry_after=2)
    return task.result()


def failure_of_task(task: asyncio.Task[Any]) -> ApiError | None:
    """Return a task's error as a refusal; None if the task has a result."""
    try:
        result_of(task)
    except ApiError as error:
        return error
    except PyRAGError as error:
        return from_pyrag(error)
    except Exception:
        return ApiError(500, "internal_error", "internal error: see the log of the server")
    return None


async def _wait_for(request: Request, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait for tasks. If the client disconnects first, cancel them and raise `ApiError`."""
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


async def heard(events: asyncio.Queue[dict[str, Any] | None]) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield a question's events in groups; an empty group after `HEARTBEAT` seconds without events."""
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT):
                waiting = [await events.get()]
        except TimeoutError:
            yield []
            continue
        while not events.empty():
            waiting.append(events.get_nowait())
        if happened := [event for event in waiting if event is not None]:
            yield happened
        if waiting[-1] is None:
            return


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def access_of(request: Request) -> Access:
    """Return the rights of the caller."""
    access: Access = request.scope[ACCESS]
    return access


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a reply in JSON.

    Args:
        value: Dataclasses and plain data.
        status: HTTP status.
        headers: Additional headers.
    """
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")
