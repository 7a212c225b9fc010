"""Batches of questions: read as needed, answered in parallel, with results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from pyrag.errors import UsageError
from pyrag.trace.model import Trace

_END: Any = object()


async def each(questions: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    """Yield the questions of a list or stream. Raises `UsageError` for anything else, including a single text."""
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
    source: AsyncIterator[str], answer: Callable[[str, int], Coroutine[Any, Any, Trace]], limit: int
) -> AsyncGenerator[Trace, None]:
    """Yield results in the order of the questions.

    Args:
        source: The questions.
        answer: Function that answers a question, given its number.
        limit: Maximum number of questions taken from the source at a time.
    """
    running: deque[asyncio.Task[Trace]] = deque()
    next_question: asyncio.Task[str] | None = None
    count, ended = 0, False
    try:
        while True:
            if next_question is None and not ended and len(running) < limit:
                next_question = asyncio.create_task(_next(source))
            waiting: set[asyncio.Task[Any]] = {
                *([next_question] if next_question else []),
                *([running[0]] if running else []),
            }
            if not waiting:
                return
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if next_question is not None and next_question.done():
                question, next_question = next_question.result(), None
                ended = question is _END
                if not ended:
                    running.append(asyncio.create_task(answer(question, count)))
                    count += 1
            while running and running[0].done():
                yield running.popleft().result()
    finally:
        unfinished = [*running, *([next_question] if next_question else [])]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


async def _next(source: AsyncIterator[str]) -> str:
    return await anext(source, _END)
