"""Forked child: gives up everything but its socket, reads one job from it, runs the job, and exits with `os._exit`."""

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


# Built in advance, since there is no memory to build it when it is needed.
_OUT_OF_MEMORY = pack_frame({"op": "end", "status": "killed", "reason": "memory", "error": None, "output": ""}, 4096)


def without_addresses(frame: bytes) -> bytes:
    """Return a frame without the addresses of objects, which differ between processes.

    Args:
        frame: Length and JSON of a message.
    """
    if b" at 0x" not in frame:
        return frame
    body = _ADDRESS.sub(rb"\1>", frame[HEADER.size :])
    return HEADER.pack(len(body)) + body


class PipeSession(Session):
    """Session over the worker's one descriptor, with plain `read` and `write`, since the filter allows no other calls.

    The first message is sent immediately; further messages before the next reply are sent together, since each write
    wakes the host.
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
        """Send the last message, without variables if it is too large."""
        message["cpu"] = time.process_time()
        try:
            self.send_frame(message)
        except WireError:
            message["variables"] = {}
            with contextlib.suppress(WireError):
                self.send_frame(message)
        self.flush()


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, in as many system calls as needed.

    Args:
        fd: A blocking descriptor.
        data: Bytes to write.

    Raises:
        OSError: The reader has closed the connection.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Reader:
    """Reader of frames from a descriptor, usually with one system call each."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""

    def frame(self) -> dict[str, Any]:
        """Return the next message."""
        self._fill(HEADER.size)
        end = HEADER.size + HEADER.unpack_from(self._data)[0]
        self._fill(end)
        body, self._data = self._data[HEADER.size : end], self._data[end:]
        return unpack_body(body)

    def _fill(self, size: int) -> None:
        """Read until at least `size` bytes are available."""
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
    """Run the one job that arrives on `fd` and exit the process.

    Args:
        fd: The worker's only descriptor.
        parent: Process id of the zygote, with which the worker dies.
        wall: Fields of a `kernel.Wall`, which is put up before the job arrives.
        base_memory: Bytes of address space in use before the program.
        guards: Guards of the namespace, created before the fork.
    """
    try:
        kernel.die_with_parent(parent)
        refusal = _lock(kernel.Wall(*wall), base_memory)
        reader = Reader(fd)
        job = take_job(reader)
        session = PipeSession(job, fd, reader, guards.helpers.errors)
        if refusal:
            session.send_frame({"op": "broken", "message": refusal})
            os.kill(os.getpid(), signal.SIGKILL)  # no locked worker can send this signal, so the host trusts only this
        session.finish(run_job(job, session, guards))
    except MemoryError:
        write_all(fd, _OUT_OF_MEMORY)
        os._exit(EXIT_MEMORY)
    finally:
        os._exit(EXIT_BROKEN)


def _lock(wall: kernel.Wall, base_memory: int) -> str:
    """Lock the process; return the reason if this failed (to be reported later), else an empty text."""
    try:
        kernel.lock(wall, base_memory)
    except (OSError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def take_job(reader: Reader) -> Job:
    """Return the job that the host sends."""
    message = reader.frame()
    message["source"] = unpack_source(message["source"])
    message["limits"] = Limits(**message["limits"])
    message["primitives"] = tuple(message["primitives"])
    return Job(**message)
