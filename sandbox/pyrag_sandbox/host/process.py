"""Host's end of the zygote: starts it, keeps a few forked workers ready, hands them out, and has them killed.

A `Zygote` belongs to one event loop at a time and uses no threads. When it dies, its workers die with it; waiting
callers get a `SandboxError`, and the owner starts another zygote.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyrag_sandbox.contract import SandboxError, WorkerLostError
from pyrag_sandbox.worker.kernel import Wall
from pyrag_sandbox.worker.zygote import REPORT, REQUEST

_NEEDED = ("RestrictedPython", "greenlet", "msgspec", "pyrag_sandbox")
_REPLACE_AFTER = 0.005  # seconds; by then most programs wait for their first call, so a fork does not delay them


@dataclass(slots=True, eq=False)
class Worker:
    """Forked child that is waiting for its job or running it."""

    pid: int
    socket: socket.socket
    wall: Wall
    status: int | None = None  # exit status from waitpid, once it is gone
    cpu_seconds: float = 0.0
    on_gone: Callable[[], None] | None = None


def _search_path(helpers: str) -> list[str]:
    """Return the import path of the zygote, which runs without `site`."""
    paths = []
    for name in _NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise SandboxError(f"the package {name} is not installed: pip install {name.lower()}")
        paths.append(str(Path(spec.origin).resolve().parent.parent))
    if helpers:
        paths.append(_folder_of(helpers))
    return list(dict.fromkeys(paths))


def _folder_of(module: str) -> str:
    """Return the folder from which a module, or its package, is imported."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None or spec.origin is None:
        raise SandboxError(f"the module of helpers {module!r} is not installed: name one that can be imported")
    origin = Path(spec.origin).resolve()
    return str(origin.parents[1] if spec.submodule_search_locations else origin.parent)


def _start(helpers: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    path = _search_path(helpers)
    ours, theirs = socket.socketpair()
    script = str(Path(__file__).parents[1] / "worker" / "zygote.py")
    command = [sys.executable, "-P", "-s", "-S", "-B", script, str(theirs.fileno()), json.dumps(path), helpers]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
            command,
            env={"PYTHONHASHSEED": "0"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C at the terminal must only reach the host
        )
    except OSError as error:
        ours.close()
        raise SandboxError(f"the sandbox process does not start: {error}") from error
    finally:
        theirs.close()
    ours.setblocking(False)
    return process, ours


@dataclass(slots=True)
class _Resources:
    """Resources to release when a zygote is closed or collected."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    owner: int  # id of the process that started it; a forked copy of the host may only close its descriptors
    loop: asyncio.AbstractEventLoop | None = None
    idle: deque[Worker] = field(default_factory=deque)

    def release(self) -> None:
        """End the zygote, and with it the workers."""
        # A forked copy shares the loop's epoll instance with its parent, so it must not remove descriptors from it.
        if self.loop is not None and not self.loop.is_closed() and os.getpid() == self.owner:
            self.loop.remove_reader(self.control.fileno())
            self.loop.remove_writer(self.control.fileno())
        for connection in [self.control, *(worker.socket for worker in self.idle)]:
            connection.close()
        self.idle.clear()
        if os.getpid() != self.owner:
            self.process.returncode = 0  # not ours to wait for
        elif self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Zygote:
    """Client of a zygote process: `acquire` returns a worker, `kill` ends one, `close` ends all.

    Attributes:
        pid: Process id of the zygote.
        helpers: Module whose functions its programs may call.
        idle: Workers that are ready for a program.
        busy: Workers that run a program, by process id.
        failure: Reason why the zygote ended; None while it can be used.
    """

    def __init__(self, prefork: int, wall: Wall, helpers: str = "") -> None:
        self.prefork = prefork
        self.helpers = helpers
        self.owner = os.getpid()
        self.failure: str | None = None
        self.error: type[SandboxError] = SandboxError  # type of the error for waiting callers
        process, self._control = _start(helpers)
        self.pid = process.pid
        self._resources = _Resources(process, self._control, self.owner)
        self._finalizer = weakref.finalize(self, self._resources.release)
        self.idle = self._resources.idle
        self.busy: dict[int, Worker] = {}
        self._waiting: defaultdict[Wall, deque[asyncio.Future[Worker]]] = defaultdict(deque)
        self._ordered: deque[Wall] = deque()  # walls of the workers being forked, in order
        self._owed: deque[Wall] = deque()  # walls of the workers to fork soon
        self._sockets: deque[int] = deque()
        self._data = b""
        self._orders = bytearray()  # orders not sent yet
        for _ in range(prefork):
            self._fork(wall)

    # Life

    @property
    def usable(self) -> bool:
        """True if the zygote runs and was started by this process."""
        return self.failure is None and self.owner == os.getpid()

    def belongs_to(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return True if this loop may use the zygote."""
        mine = self._resources.loop
        return mine is loop or mine is None or mine.is_closed()

    def disown(self) -> None:
        """Close the copied descriptors in a forked child. The process continues to serve the parent."""
        self._finalizer()

    def close_soon(self) -> None:
        """Close the zygote in the loop that uses it, which may run in another thread."""
        loop = self._resources.loop
        if loop is not None and loop.is_running() and loop is not _running_loop():
            with contextlib.suppress(RuntimeError):  # closed in this moment
                loop.call_soon_threadsafe(self.close)
                return
        self.close()

    def attach(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Serve this loop from now on, and return True if the zygote can be used.

        No other running loop may be using it (`belongs_to`). Reports that have already arrived are read first.
        """
        if self._resources.loop is not loop:
            self._waiting.clear()  # they are futures of a closed loop
            self._resources.loop = loop
            loop.add_reader(self._control.fileno(), _weakly(self, Zygote.on_readable))
            self._replace()  # the timers of a closed loop are gone
            self._send_orders()
        while self.on_readable():
            pass
        return self.usable

    def close(self) -> None:
        """End the zygote and its workers."""
        self._fail("the sandbox was closed")

    def _fail(self, reason: str, error: type[SandboxError] = SandboxError) -> None:
        if self.failure is not None:
            return
        self.failure, self.error = reason, error
        self._finalizer()
        for worker in self.busy.values():
            self._gone(worker, signal.SIGKILL, 0.0)
        self.busy.clear()
        for fd in self._sockets:
            os.close(fd)
        self._sockets.clear()
        for future in itertools.chain(*self._waiting.values()):
            if not future.done():
                future.set_exception(error(reason))
        self._waiting.clear()

    # Workers

    async def acquire(self, wall: Wall) -> Worker:
        """Return a worker behind this wall, forked earlier or just now."""
        if self.failure is not None:
            raise self.error(self.failure)
        worker = next((worker for worker in self.idle if worker.wall == wall), None)
        if worker is not None:
            self.idle.remove(worker)
        self._replace_later(wall)
        if worker is None:
            self._fork(wall)
            worker = await self._next_made(wall)
        self.busy[worker.pid] = worker
        return worker

    async def _next_made(self, wall: Wall) -> Worker:
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting[wall].append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._arm(future.result())
            raise

    def _replace_later(self, wall: Wall) -> None:
        """Request enough workers behind this wall to be forked before they are needed."""
        made = sum(worker.wall == wall for worker in self.idle)
        coming = self._owed.count(wall) + self._ordered.count(wall) - len(self._waiting[wall])
        missing = self.prefork - made - coming
        if missing > 0:
            self._owed.extend([wall] * missing)
            asyncio.get_running_loop().call_later(_REPLACE_AFTER, _weakly(self, Zygote._replace))

    def _replace(self) -> None:
        while self._owed and self.failure is None:
            self._fork(self._owed.popleft())

    def kill(self, worker: Worker) -> None:
        """End a worker, unless it has ended by itself."""
        if worker.status is None and self.failure is None:
            self._order(REQUEST.pack(b"kill", worker.pid, 0, 0, False))

    def _fork(self, wall: Wall) -> None:
        self._ordered.append(wall)
        self._order(REQUEST.pack(b"fork", 0, wall.memory_mb, wall.cpu_seconds, wall.kernel))

    def _order(self, request: bytes) -> None:
        self._orders += request
        self._send_orders()

    def _send_orders(self) -> None:
        """Send as many orders as the socket accepts; the rest waits until the zygote catches up."""
        loop = self._resources.loop
        try:
            while self._orders:
                del self._orders[: self._control.send(self._orders)]
        except BlockingIOError:
            if loop is not None:
                loop.add_writer(self._control.fileno(), _weakly(self, Zygote._send_orders))
            return
        except OSError as error:
            self._fail(f"the sandbox process has ended unexpectedly ({error.strerror or error})", WorkerLostError)
            return
        if loop is not None and not loop.is_closed():
            loop.remove_writer(self._control.fileno())

    # Reports

    def on_readable(self) -> bool:
        """Read reports, and return True if there may be more."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, REPORT.size * 32, 64)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(f"the sandbox process has ended unexpectedly ({error.strerror or error})", WorkerLostError)
            return False
        self._sockets.extend(fds)
        if not data:
            self._fail("the sandbox process has ended unexpectedly; the next program starts another", WorkerLostError)
            return False
        self._data += data
        while self.failure is None and len(self._data) >= REPORT.size:
            what, pid, status, cpu = REPORT.unpack_from(self._data)
            self._data = self._data[REPORT.size :]
            self._report(what, pid, status, cpu)
        return self.failure is None

    def _report(self, what: bytes, pid: int, status: int, cpu: float) -> None:
        if what == b"made":
            self._made(pid)
        elif what == b"gone":
            worker = self.busy.pop(pid, None)
            if worker is not None:
                self._gone(worker, status, cpu)
            self._forget_idle(pid)
        else:
            self._fail(f"the sandbox process does not start: {self._data.decode(errors='replace')}")

    def _made(self, pid: int) -> None:
        if not self._sockets:
            self._fail("the sandbox process cannot hand over a worker: too many open files in this process?")
            return
        connection = socket.socket(fileno=self._sockets.popleft())
        connection.setblocking(False)
        worker = Worker(pid, connection, self._ordered.popleft())
        waiting = self._waiting[worker.wall]
        while waiting:
            future = waiting.popleft()
            if not future.done():
                future.set_result(worker)
                return
        self._arm(worker)

    def _arm(self, worker: Worker) -> None:
        """Keep a worker for the next program. If there are enough, release the oldest one."""
        self.idle.append(worker)
        if len(self.idle) > self.prefork:
            self.idle.popleft().socket.close()  # the worker exits when its socket closes

    def _gone(self, worker: Worker, status: int, cpu: float) -> None:
        worker.status = status
        worker.cpu_seconds = cpu
        if worker.on_gone is not None:
            worker.on_gone()

    def _forget_idle(self, pid: int) -> None:
        for worker in list(self.idle):
            if worker.pid == pid:
                self.idle.remove(worker)
                worker.socket.close()
                with contextlib.suppress(OSError):
                    self._fork(worker.wall)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _weakly(zygote: Zygote, work: Callable[[Zygote], object]) -> Callable[[], None]:
    """Return a callback that does not keep an unused zygote alive."""
    reference = weakref.ref(zygote)

    def call() -> None:
        target = reference()
        if target is not None:
            work(target)

    return call
