"""The forked child: gives up everything but its socket, takes one job from there, runs it, and leaves by `os._exit`."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from pyrag_sandbox.contract import Limits
from pyrag_sandbox.policy.guards import Guards
from pyrag_sandbox.wire import EXIT_MEMORY, HEADER, WireError, pack_frame, unpack_body, unpack_source
from pyrag_sandbox.worker import kernel
from pyrag_sandbox.worker.execution import Job, Session, run_job

EXIT_BROKEN = 78
_READ_BYTES = 16 * 1024
_MAX_UNSENT = 2048  # bytes
_ADDRESS = re.compile(
    rb"(<(?:function|generator object|built-in method|bound method|[\w.]+ object)\b(?:[^<>\"]|<\w+>){0,200})"
    rb" at 0x[0-9a-f]+>"
)


# Built before it is needed: there is no memory left to build it with.
_OUT_OF_MEMORY = pack_frame({"op": "end", "status": "killed", "reason": "memory", "error": None, "output": ""}, 4096)


def without_addresses(frame: bytes) -> bytes:
    """Return a frame without the addresses of objects in it: they differ from process to process.

    Args:
        frame: length and JSON.
    """
    if b" at 0x" not in frame:
        return frame
    body = _ADDRESS.sub(rb"\1>", frame[HEADER.size :])
    return HEADER.pack(len(body)) + body


class PipeSession(Session):
    """A session over the worker's one descriptor. Plain `read` and `write`: the filter allows nothing fancier.

    A message leaves at once, and those that follow it before a reply is waited for leave together: each write wakes the
    host, whose turn it then is.
    """

    def __init__(self, job: Job, fd: int, reader: Reader, errors: Mapping[str, type[Exception]]) -> None:
        super().__init__(job, errors)
        self._fd = fd
        self._reader = reader
        self._unsent = b""
        self._host_is_awake = False

    def send_frame(self, message: dict[str, Any]) -> None:
        self._unsent += without_addresses(pack_frame(message, self.job.limits.frame_bytes))
        if not self._host_is_awake or len(self._unsent) > _MAX_UNSENT:
            self.flush()
        self._host_is_awake = True

    def flush(self) -> None:
        if self._unsent:
            data, self._unsent = self._unsent, b""
            write_all(self._fd, data)

    def receive_frame(self) -> dict[str, Any]:
        self.flush()
        self._host_is_awake = False
        return self._reader.frame()

    def finish(self, message: dict[str, Any]) -> NoReturn:
        self.send_last(message)
        os._exit(0)

    def send_last(self, message: dict[str, Any]) -> None:
        message["cpu"] = time.process_time()
        try:
            self.send_frame(message)
        except WireError:
            message["variables"] = {}
            with contextlib.suppress(WireError):
                self.send_frame(message)
        self.flush()


def write_all(fd: int, data: bytes) -> None:
    """Write in as many system calls as it takes.

    Args:
        fd: a blocking descriptor.
        data: any number of bytes.

    Raises:
        OSError: the reader has gone.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Reader:
    """Frames from a descriptor, as a rule with one system call each."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""

    def frame(self) -> dict[str, Any]:
        self._fill(HEADER.size)
        end = HEADER.size + HEADER.unpack_from(self._data)[0]
        self._fill(end)
        body, self._data = self._data[HEADER.size : end], self._data[end:]
        return unpack_body(body)

    def _fill(self, size: int) -> None:
        """Have `size` bytes at hand."""
        if len(self._data) >= size:
            return
        parts, have = [self._data], len(self._data)
        while have < size:
            part = os.read(self._fd, max(_READ_BYTES, size - have))
            if not part:
                os._exit(0)  # the host has gone
            parts.append(part)
            have += len(part)
        self._data = b"".join(parts)


def serve(
    fd: int,
    parent: int,
    wall: tuple[float, float, bool],
    *,
    base_memory: int,
    guards: Guards,
) -> NoReturn:
    """Run the one job that arrives on `fd` and leave the process.

    Args:
        fd: the worker's only descriptor.
        parent: process id of the zygote; the worker dies with it.
        wall: fields of a `kernel.Wall`; it is put up before the job arrives.
        base_memory: bytes of address space in use before the program.
        guards: the namespace's guards, made before the fork.
    """
    try:
        kernel.die_with_parent(parent)
        refusal = _lock(kernel.Wall(*wall), base_memory)
        reader = Reader(fd)
        job = take_job(reader)
        session = PipeSession(job, fd, reader, guards.helpers.errors)
        if refusal:
            session.send_frame({"op": "broken", "message": refusal})
            os.kill(os.getpid(), signal.SIGKILL)  # a signal that no locked worker can send: the host believes no other
        session.finish(run_job(job, session, guards))
    except MemoryError:
        write_all(fd, _OUT_OF_MEMORY)
        os._exit(EXIT_MEMORY)
    finally:
        os._exit(EXIT_BROKEN)


def _lock(wall: kernel.Wall, base_memory: int) -> str:
    """Put the lock on; return the reason if that failed, to be reported later, else an empty string."""
    try:
        kernel.lock(wall, base_memory)
    except (OSError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def take_job(reader: Reader) -> Job:
    message = reader.frame()
    message["source"] = unpack_source(message["source"])
    message["limits"] = Limits(**message["limits"])
    message["primitives"] = tuple(message["primitives"])
    return Job(**message)
