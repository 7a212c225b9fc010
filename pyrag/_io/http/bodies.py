"""Reading of HTTP replies within a limit: whole bodies, the start of refusals, and server-sent events.

Sizes are bytes after decompression, and are checked while a body arrives: a body without an end, or a decompression
bomb, takes no more memory than the limit. `pyrag._io.http.client` handles time limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import aiohttp

from pyrag._io.http.errors import FaultError, ReplyFormError
from pyrag._io.http.options import BodyLimit
from pyrag._io.threads import PerLoop

MAX_REFUSAL = 64 << 10
"""Maximum number of bytes that are read from an error body."""

MAX_EVENT = 16 << 20
"""Maximum number of bytes of a server-sent event."""

_MAX_READ_AT_ONCE = 1 << 20  # bodies with a declared size up to this one are read by aiohttp's own loop
_GUARDED_FROM = 1 << 20  # smaller bodies cannot hold enough values to matter
_MAX_SHARED = 1 << 20  # bytes of a body that may be read at the same time as others
_MAX_SHARED_STREAM = 16 << 20
_MAX_VALUES = 500_000
_turns = PerLoop(asyncio.Lock)  # of large bodies


async def read_body(response: aiohttp.ClientResponse, limit: BodyLimit) -> bytes:
    """Read a whole body.

    Args:
        response: The reply.
        limit: Maximum size after decompression.

    Raises:
        FaultError: The body is larger than the limit.
    """
    length = response.content_length
    if length is not None and length > limit.bytes:
        raise too_large(limit)
    if length is not None and length <= _MAX_READ_AT_ONCE and "Content-Encoding" not in response.headers:
        return await response.read()
    # It grows in place and returns its bytes without a copy. Closing frees them even if a traceback holds this frame.
    with io.BytesIO() as body:
        async for chunk in chunks_of(response, limit, shared=_MAX_SHARED):
            body.write(chunk)
        return body.getvalue()


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """Return the first `MAX_REFUSAL` bytes of an error body."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= MAX_REFUSAL:
            break
    return bytes(body[:MAX_REFUSAL])


async def chunks_of(
    response: aiohttp.ClientResponse, limit: BodyLimit, *, shared: int = _MAX_SHARED_STREAM
) -> AsyncGenerator[bytes, None]:
    """Yield the body as it arrives.

    Args:
        response: The reply.
        limit: Maximum size after decompression.
        shared: Size in bytes above which bodies are read one at a time, so that many calls need little memory.

    Raises:
        FaultError: The body is larger than the limit.
    """
    size = 0
    async with contextlib.AsyncExitStack() as stack:
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > limit.bytes:
                raise too_large(limit)
            if size > shared >= size - len(chunk):
                await stack.enter_async_context(_turns.get())
            yield chunk


async def events_of(chunks: AsyncIterator[bytes], on_line: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the data of each server-sent event.

    Args:
        chunks: The body as it arrives.
        on_line: Called for each chunk that completes a line, including the comments that servers send to keep a
            connection open.

    Raises:
        ValueError: An event or a line is larger than `MAX_EVENT`.
    """
    parts: list[bytes] = []  # of an incomplete line
    data: list[bytes] = []
    size = 0  # bytes of `parts` and `data`
    async for chunk in chunks:
        size += len(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join((*parts, chunk)).split(b"\n")
            parts = [rest]
            events = _events_in(lines, data)
            on_line()
            if events or not data:
                size = len(rest) + sum(map(len, data))
            for event in events:
                yield event
        else:
            parts.append(chunk)
        if size > MAX_EVENT:
            raise ReplyFormError("an event without an end")
    _read_line(b"".join(parts).rstrip(), data)  # some servers leave out the last line's end
    if rest_of_data := b"\n".join(data):
        yield rest_of_data


def _events_in(lines: list[bytes], data: list[bytes]) -> list[bytes]:
    """Return the events that these lines complete; `data` holds the lines of an incomplete event."""
    events: list[bytes] = []
    for line in map(bytes.rstrip, lines):
        if line:
            _read_line(line, data)
        elif data:
            events += filter(None, [b"\n".join(data)])  # by the standard, an event without data is ignored
            data.clear()
    return events


def _read_line(line: bytes, data: list[bytes]) -> None:
    if line.startswith(b"data:"):
        data.append(line[5:].removeprefix(b" "))


def too_large(limit: BodyLimit) -> FaultError:
    raise_it = f", or raise the setting {limit.setting}" if limit.setting else ""
    return FaultError(f"sent a reply of more than {limit.megabytes} MB", f"check that its URL is right{raise_it}")


def check_values(content: bytes) -> None:
    """Raise `ValueError` for JSON that would take far more memory than its size suggests."""
    if len(content) < _GUARDED_FROM:
        return
    if content.count(b"{") + content.count(b"[") + content.count(b'":') > _MAX_VALUES:
        raise ReplyFormError(f"it holds more than {_MAX_VALUES:,} objects, lists and keys")
