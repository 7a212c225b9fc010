"""Questions from stdin, one per line, answered as they arrive.

Invalid UTF-8 in a line affects no other line: the bytes become surrogates, and that question is refused. Encodings:
UTF-8, and UTF-16 with a byte order mark (Windows); no others.
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
_MAX_LINE = 1 << 20  # characters; a longer line is cut, since no question is that long
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """Line of stdin with its number, which starts at 1."""

    number: int
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
    """Incremental decoder from bytes to lines."""

    def __init__(self) -> None:
        self._start = b""
        self._decoder: io.IncrementalNewlineDecoder | None = None
        self._rest = ""
        self._count = 0

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[QuestionLine]:
        """Yield the complete lines that are not blank.

        Args:
            data: Next bytes of the stream.
            final: True for the last bytes, which complete the last line.
        """
        *lines, rest = self._decoded(data, final).split("\n")
        lines[:1] = [self._rest + line for line in lines[:1]]
        self._rest = (rest if lines else self._rest + rest)[: _MAX_LINE + 1]
        if final:
            lines.append(self._rest)
        for line in lines:
            self._count += 1
            if text := line.strip():
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
            # Normalise line endings.
            self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        return self._decoder.decode(data, final)


async def _chunks(stream: IO[str]) -> AsyncIterator[bytes]:
    """Yield the bytes of a stream as they arrive, without a thread that would keep the process alive."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # not a file of the system, as in tests or in an embedding program
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
        await asyncio.sleep(0)  # lets an interrupt through, however long the file is
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
