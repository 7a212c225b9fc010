"""Questions from stdin, one per line, answered as they come in.

Invalid UTF-8 in a line affects no other line: its bytes are kept as surrogates, and the question is refused when it is
asked. Left out: other encodings than UTF-8, and UTF-16 with a byte order mark (Windows).
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import IO

_CHUNK = 1 << 16
_MAX_LINE = 1 << 20  # characters; of a longer line, more is not kept: it is no question
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class QuestionLine:
    number: int  # from 1, as editors count
    text: str


async def question_lines(stream: IO[str]) -> AsyncIterator[QuestionLine]:
    """Yield the lines that are not blank."""
    lines = LineReader()
    async for chunk in _chunks(stream):
        for line in lines.feed(chunk):
            yield line
    for line in lines.feed(b"", final=True):
        yield line


class LineReader:
    """A decoder from bytes to lines."""

    def __init__(self) -> None:
        self._start = b""
        self._decoder: io.IncrementalNewlineDecoder | None = None
        self._rest = ""
        self._count = 0

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[QuestionLine]:
        """Yield the lines that are whole and not blank.

        Args:
            data: the next bytes.
            final: no more will come.
        """
        *whole, rest = self._decoded(data, final).split("\n")
        whole[:1] = [self._rest + one for one in whole[:1]]
        self._rest = (rest if whole else self._rest + rest)[: _MAX_LINE + 1]
        if final:
            whole.append(self._rest)
        for one in whole:
            self._count += 1
            if text := one.strip():
                yield QuestionLine(self._count, text)

    def _decoded(self, data: bytes, final: bool) -> str:
        if self._decoder is None:
            self._start += data
            if len(self._start) < len(codecs.BOM_UTF8) and not final:
                return ""
            data, self._start = self._start, b""
            encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
            errors = "replace" if encoding == "utf-16" else "surrogateescape"
            decoder = codecs.getincrementaldecoder(encoding)(errors)
            # QuestionLine ends of all systems become one.
            self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        return self._decoder.decode(data, final)


async def _chunks(stream: IO[str]) -> AsyncIterator[bytes]:
    """Yield the bytes of a stream as they come, without a thread that would keep the process alive."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # no file of the system: a stand-in of tests, an embedding program
        yield stream.read().encode("utf-8", "surrogateescape")
        return
    while True:
        await _readable(descriptor)
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            return
        yield chunk


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except (OSError, NotImplementedError):  # a file on a disk, which is always readable
        await asyncio.sleep(0)  # an interrupt is heard here, however long its line is
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
