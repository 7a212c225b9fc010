"""Questions of a batch: read as they are needed, answered side by side, with results in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from pyrag.errors import UsageError
from pyrag.trace.model import Trace

_END: Any = object()


async def each(questions: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    """Yield the questions of a list or a stream. Raises `UsageError` for anything else, one text included."""
    if isinstance(questions, str | bytes):
        raise UsageError("aask_many takes a list of questions, but was given one text: use aask for a single question")
    if isinstance(questions, AsyncIterable):
        async for question in questions:
            yield question
        return
    if not isinstance(questions, Iterable):
        raise UsageError(f"aask_many takes a list of questions, not {type(questions).__name__}")
    for question in questions:
        yield question


async def in_order(
    source: AsyncIterator[str], one: Callable[[str, int], Coroutine[Any, Any, Trace]], most: int
) -> AsyncGenerator[Trace, None]:
    """Yield results in the order of the questions.

    Args:
        source: The questions.
        one: Answers a question, given with its number.
        most: Questions that are taken from their source at a time.
    """
    running: deque[asyncio.Task[Trace]] = deque()
    coming: asyncio.Task[str] | None = None
    count, ended = 0, False
    try:
        while True:
            if coming is None and not ended and len(running) < most:
                coming = asyncio.create_task(_next(source))
            waiting: set[asyncio.Task[Any]] = {*([coming] if coming else []), *([running[0]] if running else [])}
            if not waiting:
                return
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if coming is not None and coming.done():
                question, coming = coming.result(), None
                ended = question is _END
                if not ended:
                    running.append(asyncio.create_task(one(question, count)))
                    count += 1
            while running and running[0].done():
                yield running.popleft().result()
    finally:
        left = [*running, *([coming] if coming else [])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _next(source: AsyncIterator[str]) -> str:
    return await anext(source, _END)
