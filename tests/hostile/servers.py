"""Servers that mean harm: each writes to a socket what a client must survive, until the client goes away.

A behaviour is a function of the reader and writer of one connection whose request was read. They are raw sockets, as
no server library would send most of this.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import json
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]

CHUNK = 1 << 16


def head(status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    """The start of a reply whose body ends when the connection does."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *more, "", ""]
    return "\r\n".join(lines).encode()


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def flood(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Sends `data` for ever; it ends when the connection does."""
    data *= max(1, CHUNK // len(data))
    while True:
        writer.write(data)
        await writer.drain()


async def drip(writer: asyncio.StreamWriter, data: bytes, seconds: float = 0.05) -> None:
    while True:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(seconds)


def endless(opening: bytes, data: bytes) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(opening)
        await flood(writer, data)

    return behave


def dripping(opening: bytes, data: bytes) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(opening)
        await drip(writer, data)

    return behave


def once(data: Callable[[], bytes]) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(data())
        await writer.drain()

    return behave


@functools.cache
def bomb(megabytes: int, pack: str = "gzip") -> bytes:
    """A JSON text of that size, packed."""
    packer = zlib.compressobj(1, wbits=31 if pack == "gzip" else 15)
    piece = b"a" * (1 << 20)
    packed = packer.compress(b'{"choices": "') + b"".join(packer.compress(piece) for _ in range(megabytes))
    return packed + packer.compress(b'"}') + packer.flush()


def sse(*events: str) -> bytes:
    return "".join(f"data: {event}\n\n" for event in events).encode()


JSON = head()
CHUNKED = head("200 OK", "application/json", "Transfer-Encoding: chunked")
STREAM = head("200 OK", "text/event-stream")
GZIP = head("200 OK", "application/json", "Content-Encoding: gzip")
DEFLATE = head("200 OK", "application/json", "Content-Encoding: deflate")
PIECE = json.dumps({"choices": [{"delta": {"content": "a"}}]})

BEHAVIOURS: dict[str, Behaviour] = {
    "endless body": endless(JSON, b"a"),
    "endless chunks": endless(CHUNKED, chunked(b"b" * CHUNK)),
    "endless empty lists": endless(JSON + b'{"choices": [', b"[],"),
    "endless objects": endless(JSON + b'{"result": [[', b'{"text": ""},'),
    "endless depth": endless(JSON, b"["),
    "a length of a terabyte": endless(head("200 OK", "application/json", "Content-Length: 1000000000000"), b"c"),
    "a gzip bomb": once(lambda: GZIP + bomb(600)),
    "a deflate bomb": once(lambda: DEFLATE + bomb(600, "deflate")),
    "a gzip bomb as a refusal": once(lambda: head("400 Bad", "application/json", "Content-Encoding: gzip") + bomb(600)),
    "endless gzip members": endless(GZIP, gzip.compress(b"")),
    "gzip that is none": endless(GZIP, b"not gzip"),
    "an encoding nobody asked for": endless(head("200 OK", "application/json", "Content-Encoding: br"), b"x"),
    "endless refusal": endless(head("400 Bad"), b"d"),
    "endless failure": endless(head("500 Bad"), b"e"),
    "endless redirect": endless(head("302 There", "text/html", "Location: http://127.0.0.1:1/"), b"f"),
    "endless header line": endless(b"HTTP/1.1 200 OK\r\nX: ", b"g"),
    "endless headers": endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "endless status line": endless(b"HTTP/1.1 200 ", b"h"),
    "endless interim replies": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless chunk extension": endless(CHUNKED + b"5;", b"i"),
    "endless chunk size": endless(CHUNKED, b"0"),
    "endless trailers": endless(CHUNKED + b"0\r\n", b"X: y\r\n"),
    "endless empty events": endless(STREAM, b"data: {}\n\n"),
    "endless events without data": endless(STREAM, b"data:\n\n"),
    "endless comments": endless(STREAM, b": still here\n\n"),
    "endless blank lines": endless(STREAM, b"\n"),
    "endless garbage events": endless(STREAM, b"data: %$\x00\xff\n\n"),
    "endless event": endless(STREAM, b"data: x\n"),
    "endless line": endless(STREAM + b"data: ", b"j"),
    "endless pieces": endless(STREAM, sse(PIECE)),
    "endless thought": endless(STREAM, sse(json.dumps({"choices": [{"delta": {"reasoning": "hm"}}]}))),
    "dripping body": dripping(JSON, b" "),
    "dripping head": dripping(b"HTTP/1.1 200 OK\r\nX: ", b"k"),
    "dripping refusal": dripping(head("400 Bad"), b"l"),
    "dripping line": dripping(STREAM + b"data: ", b"m"),
    "dripping comments": dripping(STREAM, b": still here\n\n"),
    "dripping events without data": dripping(STREAM, b"data:\n\n"),
    "silence after one piece": dripping(STREAM + sse(PIECE), b""),
}


def filling(opening: bytes, piece: bytes, megabytes: int, end: bytes) -> Behaviour:
    """A whole JSON body of about that size."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        size = len(opening) + (count := (megabytes << 20) // len(piece)) * len(piece) + len(end)
        writer.write(head("200 OK", "application/json", f"Content-Length: {size}") + opening)
        at_once = max(1, CHUNK // len(piece))
        for start in range(0, count, at_once):
            writer.write(piece * min(at_once, count - start))
            await writer.drain()
        writer.write(end)
        await writer.drain()

    return behave


SAID = b'{"choices": [{"message": {"content": '
FOUND = b'{"result": [['

# Within the limit, but made to become more in memory than they are on the line.
BULKY_MODEL: dict[str, Behaviour] = {
    "long text": filling(SAID + b'"', b"a", 60, b'"}}]}'),
    "long text with a wide character": filling(SAID + '"🙂'.encode(), b"a", 60, b'"}}]}'),
    "many parts": filling(SAID + b"[{}", b",{}", 60, b"]}}]}"),
    "many keys": filling(SAID + b"[{", b'"aaa":1,', 60, b'"":1}]}}]}'),
    "many floats": filling(SAID + b'[{"a":[1', b",1.5", 60, b"]}]}}]}"),
    "many choices": filling(SAID + b'"x"}}', b',{"message":{}}', 60, b"]}"),
    "many blanks": filling(b"{}", b" ", 60, b""),
    "a deep list": filling(b"", b"[", 60, b""),
}
BULKY_RETRIEVER: dict[str, Behaviour] = {
    "one passage": filling(FOUND + b'{"text": "', b"a", 250, b'"}]]}'),
    "one passage with a wide character": filling(FOUND + '{"text": "🙂'.encode(), b"a", 250, b'"}]]}'),
    "five passages": filling(
        FOUND + b'{"text": "x"}', ',{"text": "🙂'.encode() + b"a" * (15 << 20) + b'"}', 250, b"]]}"
    ),
    "many passages": filling(FOUND + b'{"text": "a"}', b',{"text": "a"}', 250, b"]]}"),
    "many lists": filling(b'{"result": [[]', b",[]", 250, b"]}"),
    "many numbers": filling(b'{"result": [[1', b",1", 250, b"]]}"),
    "many parts": filling(FOUND + b'{"text": "a", "parts": {"": 1', b',"a":1.5', 250, b"}}]]}"),
}


@contextmanager
def hostile(behaviour: Behaviour) -> Iterator[str]:
    """The address of a server, in a thread of its own, that does this to every request."""
    loop = asyncio.new_event_loop()
    started: Future[str] = Future()
    end = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(_serve(behaviour, started, end),))
    thread.start()
    try:
        yield started.result()
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


async def _serve(behaviour: Behaviour, started: Future[str], end: asyncio.Event) -> None:
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            await behaviour(writer)
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(talk(reader, writer))
        talks.add(task)
        task.add_done_callback(talks.discard)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        started.set_result(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await end.wait()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks)
