"""`Sandbox`, which runs untrusted programs over asynchronous primitives. `contract` describes inputs and outputs."""

from __future__ import annotations

import asyncio
import contextlib
import keyword
import os
import threading
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

from pyrag_sandbox.contract import Limits, Outcome, Primitive, SandboxError
from pyrag_sandbox.host.process import Worker, Zygote
from pyrag_sandbox.host.program_session import Conversation, Handles
from pyrag_sandbox.wire import FloodError, FrameReader, WireError, encode, pack_frame, pack_source
from pyrag_sandbox.worker import kernel

Require = Literal["kernel", "policy"]
_READ_BYTES = 256 * 1024
_WATCH_SECONDS = 0.02


class Sandbox:
    """Runner of programs, each in its own process that lives no longer than the program.

    The first run starts the worker factory. Closing the sandbox is good practice but not necessary.

    Args:
        require: `kernel` (default) refuses to run if the kernel wall is not available; `policy` runs with the policy
            wall and any other available layer.
        limits: Default limits of every run.
        prefork: Number of workers kept ready; None for a default that depends on the number of CPUs.
        kernel: Whether to use the kernel wall. False is for testing only the policy, and needs `require="policy"`.
    """

    def __init__(
        self,
        *,
        require: Require = "kernel",
        limits: Limits | None = None,
        prefork: int | None = None,
        kernel: bool = True,
    ) -> None:
        if require not in ("kernel", "policy"):
            raise ValueError(f"require is 'kernel' or 'policy', not {require!r}")
        if not kernel and require == "kernel":
            raise ValueError("kernel=False needs require='policy'")
        self._require = require
        self._limits = limits or Limits()
        self._prefork = prefork if prefork is not None else min(4, os.cpu_count() or 1)
        self.zygotes: list[Zygote] = []
        self._lock = threading.Lock()  # several event loops may use one sandbox
        self._owner = os.getpid()
        self._kernel: bool | None = None if kernel else False
        self._started = 0  # number of zygotes started

    @property
    def restarts(self) -> int:
        """Number of times that the worker factory was restarted."""
        return max(0, self._started - 1)

    async def run(
        self,
        source: str,
        primitives: Mapping[str, Primitive],
        *,
        limits: Limits | None = None,
        result: str = "final_answer",
        concurrent: bool = True,
        policy: bool = True,
        helpers: str = "",
        inputs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome:
        """Run a program to its end, in a worker of its own.

            outcome = await sandbox.run("final_answer = shout('hello')", {"shout": shout}, limits=Limits(calls=10))

        Args:
            source: Python source, at most `limits.source_bytes` (64 KiB), `limits.nodes` and `limits.depth`.
            primitives: Asynchronous functions, by the name that the program uses. Names must not begin with "_".
            limits: Limits of this run; None for the sandbox's. Defaults: 5 s of own time, 5 s CPU, 256 MB, 100
                calls.
            result: Global name from which `Outcome.value` is read, at most `limits.value_bytes` (1 MiB).
            concurrent: Whether to run independent calls in parallel; the outcome is always the same as in a sequential
                run.
            policy: Whether to check the source and guard the bytecode; False leaves only the kernel wall and
                requires it.
            helpers: Name of a module with pure functions that programs may call; see `pyrag_sandbox.helpers`.
                Workers import it before they are locked. Runs with different modules use separate processes.
            inputs: Input values by variable name: text, numbers, True, False, None, lists and dicts, with a total size
                of at most `limits.value_bytes`.

        Returns:
            The outcome. A refused program, an uncaught exception or an exceeded limit is a status, not an exception.

        Raises:
            ValueError: The name of a primitive or an input, or `result`, cannot be a name in a program; or an input is
                too large or cannot cross.
            TypeError: An input has a type that cannot cross.
            SandboxError: A required wall is missing, or the worker cannot be started.
        """
        limits = limits or self._limits
        for name in (*primitives, *inputs, result):
            if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
                raise ValueError(f"{name!r} cannot be a name in a program")
        job: dict[str, Any] = {
            "source": source,
            "primitives": list(primitives),
            "limits": {name: getattr(limits, name) for name in Limits.__slots__},
            "result": result,
            "concurrent": concurrent,
            "policy": policy,
            "inputs": encode(dict(inputs), Handles(limits.value_bytes), limits.value_bytes),
        }
        wall = kernel.Wall(limits.memory_mb, limits.cpu_seconds, self._kernel_wall(policy))
        zygote = self._zygote(wall, helpers)
        worker = await zygote.acquire(wall)
        peer = _WorkerPeer(zygote, worker, limits)
        try:
            job["source"] = pack_source(source)
            peer.send(job, cap=1 << 31)  # the host's own message; the worker limits the source
            conversation = Conversation(primitives, limits, peer)
            peer.listen(conversation)
            outcome = await conversation.outcome()
        except BaseException:
            peer.close()
            raise
        asyncio.get_running_loop().call_soon(peer.close)  # the caller need not wait for it
        return outcome

    def _kernel_wall(self, policy: bool) -> bool:
        """Return True if workers lock themselves with the kernel's help.

        Raises `SandboxError` if no wall would remain.
        """
        if self._kernel is None:
            missing = kernel.missing_layer()
            if missing and self._require == "kernel":
                raise SandboxError(
                    f"this machine lacks {missing}, so only the policy would guard programs: "
                    "pass require='policy' (--sandbox policy) to accept that"
                )
            self._kernel = missing is None
        if not policy and not self._kernel:
            raise SandboxError("the policy cannot be switched off where there is no kernel wall")
        return self._kernel

    def _zygote(self, wall: kernel.Wall, helpers: str) -> Zygote:
        """Return a running zygote with these helpers that this loop may use. Loops of other threads have their own."""
        loop = asyncio.get_running_loop()
        self._leave_to_parent()
        with self._lock:
            self.zygotes = [zygote for zygote in self.zygotes if zygote.usable]
            for zygote in self.zygotes:
                if zygote.helpers == helpers and zygote.belongs_to(loop) and zygote.attach(loop):
                    return zygote
            zygote = Zygote(self._prefork, wall, helpers)
            self._started += 1
            zygote.attach(loop)
            self.zygotes.append(zygote)
            return zygote

    def _leave_to_parent(self) -> None:
        """Drop the parent's workers and lock in a forked child."""
        if self._owner != os.getpid():
            for zygote in self.zygotes:
                zygote.disown()
            self._lock, self._owner, self.zygotes = threading.Lock(), os.getpid(), []

    def close(self) -> None:
        """End the workers. If the sandbox is used again, it starts new ones."""
        self._leave_to_parent()
        with self._lock:
            zygotes, self.zygotes = self.zygotes, []
        for zygote in zygotes:
            zygote.close_soon()

    async def aclose(self) -> None:
        """End the workers, as `close` does."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _WorkerPeer:
    """Worker process as a conversation's peer: frames over its socket, its exit through the zygote."""

    def __init__(self, zygote: Zygote, worker: Worker, limits: Limits) -> None:
        self._zygote = zygote
        self._worker = worker
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._fd = worker.socket.fileno()
        self._reader = FrameReader(limits.frame_bytes)
        self._unsent = bytearray()
        self._killed = False
        self._closed = False

    def listen(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._worker.on_gone = self._on_gone
        self._loop.add_reader(self._fd, self._on_readable)
        if self._worker.status is not None:
            self._on_gone()
        if not kernel.MEMORY_LIMIT:
            self._watch(kernel.resident_bytes(self._worker.pid) + self._limits.memory_mb * 2**20)

    def _watch(self, limit: int) -> None:
        """Check the worker's memory if the system does not limit it (macOS)."""
        if self._closed:
            return
        if kernel.resident_bytes(self._worker.pid) > limit:
            self._conversation.kill("memory")
        else:
            self._loop.call_later(_WATCH_SECONDS, self._watch, limit)

    # Peer

    def send(self, message: dict[str, Any], cap: int | None = None) -> None:
        data = pack_frame(message, self._limits.frame_bytes * 4 if cap is None else cap)
        if self._unsent or self._closed:
            self._unsent += data
            return
        sent = self._send_now(data)
        if sent < len(data):
            self._unsent += data[sent:]
            self._loop.add_writer(self._fd, self._on_writable)

    def kill(self) -> None:
        if not self._killed:
            self._killed = True
            self._zygote.kill(self._worker)

    def close(self) -> None:
        self.kill()
        self._detach()
        self._worker.on_gone = None
        self._worker.socket.close()
        with contextlib.suppress(AttributeError):
            del self._conversation  # they refer to each other, which would keep a forgotten sandbox alive

    def _detach(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)

    # Events

    def _send_now(self, data: bytes | bytearray) -> int:
        try:
            return self._worker.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # the worker is gone; its exit status tells why

    def _on_writable(self) -> None:
        del self._unsent[: self._send_now(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._fd)

    def _on_readable(self) -> None:
        try:
            data = self._worker.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._detach()
            return  # the exit status, which follows, reports how it ended
        try:
            for message in self._reader.feed(data):
                self._conversation.on_message(message)
        except FloodError:
            self._conversation.kill("memory")
        except WireError:
            self._conversation.on_bad_frame()

    def _on_gone(self) -> None:
        self._drain()  # the last message may still be in the socket
        if self._zygote.failure is not None:
            self._conversation.on_broken_sandbox(self._zygote.failure, self._zygote.error)
        else:
            self._conversation.on_dead(self._worker.status or 0, self._worker.cpu_seconds)

    def _drain(self) -> None:
        """Read until the end of the socket, which closes when its worker dies."""
        for _ in range(64):
            if self._closed:
                return
            self._on_readable()
