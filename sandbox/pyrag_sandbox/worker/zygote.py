"""Process from which workers are forked. It is started by file path, without environment or descriptors.

It imports everything that programs may need, including the caller's helpers. Then it only forks, kills and reaps on
request. It never sees a program. It ends when its control socket closes, and its children end with it. Requests and
reports are fixed-size records:

    host to zygote   b"fork" 0 wall                 fork one more worker, behind this wall
                     b"kill" pid
    zygote to host   b"made" pid                    with the worker's socket attached
                     b"gone" pid status cpu_seconds
                     b"fail" length                 followed by the reason, which has this length; the zygote then ends
"""

from __future__ import annotations

import _socket  # what it does in few steps, `socket` does in many, and each page they touch counts for a worker
import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyrag_sandbox.policy.guards import Guards

_WARMUP_RUNS = 12  # enough to specialise the bytecode of the hot paths, which happens from the ninth call on
_GC_THRESHOLD = (20_000, 20, 20)  # most programs end before the collector would run
REQUEST = struct.Struct("<4sIdd?")
REPORT = struct.Struct("<4sIid")
_FD = struct.Struct("i")


def _warm_up(module: str) -> Guards:
    """Import and use everything that a locked worker might otherwise import, since it cannot open files."""
    import codecs
    import copy  # noqa: F401 - imported by methods of Counter
    import datetime as dt
    import heapq  # noqa: F401 - likewise
    import unicodedata  # noqa: F401

    import greenlet  # type: ignore[import-untyped]  # noqa: F401 - it ships no types

    os.putenv("TZ", "UTC0")  # only for the C library; os.environ stays unchanged
    warnings.simplefilter("ignore")
    dt.datetime.strptime("2000-01-01", "%Y-%m-%d")
    for encoding in (
        "utf-16",
        "utf-32",
        "latin-1",
        "ascii",
        "cp1252",
        "utf-8-sig",
        "unicode_escape",
        "idna",
        "punycode",
    ):
        codecs.lookup(encoding)
    with contextlib.suppress(ImportError):  # 3.12 and later
        import _pylong  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    from pyrag_sandbox.helpers import load_helpers
    from pyrag_sandbox.policy.guards import Guards
    from pyrag_sandbox.worker.warmup import warm_up

    helpers = load_helpers(module)
    warm_up(times=_WARMUP_RUNS, helpers=helpers)
    return Guards(helpers)


class ForkServer:
    """Process that forks, kills and reaps workers."""

    def __init__(self, control: socket.socket, serve: Callable[..., NoReturn]) -> None:
        self._control = control
        self._serve = serve
        self._children: set[int] = set()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def run(self) -> None:
        """Serve requests until the control socket closes."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        pending = b""
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
                self._reap()
            if self._control.fileno() in ready:
                data = self._control.recv(REQUEST.size * 64)
                if not data:
                    return
                pending += data
                while len(pending) >= REQUEST.size:
                    self._obey(*REQUEST.unpack_from(pending))
                    pending = pending[REQUEST.size :]

    def _obey(self, order: bytes, pid: int, *wall: Any) -> None:
        if order == b"fork":
            self._fork(*wall)
        elif order == b"kill" and pid in self._children:  # not reaped yet, so the number is still its own
            os.kill(pid, signal.SIGKILL)

    def _fork(self, *wall: Any) -> None:
        pid, ours = self.forked(wall)
        self._children.add(pid)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _FD.pack(ours.fileno()))]
        self._control.sendmsg([REPORT.pack(b"made", pid, 0, 0.0)], rights)
        ours.close()

    def forked(self, wall: tuple[Any, ...]) -> tuple[int, _socket.socket]:
        """Return a new worker's process id and our end of its socket."""
        ours, theirs = _socket.socketpair()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            os.dup2(theirs.fileno(), 3)
            os.closerange(4, 1024)
            self._serve(3, parent, wall)
        theirs.close()
        return pid, ours

    def _reap(self) -> None:
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self._children.discard(pid)
            cpu = usage.ru_utime + usage.ru_stime
            self._control.sendall(REPORT.pack(b"gone", pid, status, cpu))


def main() -> None:
    descriptor = int(sys.argv[1])  # duplicated below, since a worker only closes low descriptor numbers
    control = socket.socket(fileno=os.dup(descriptor))
    os.close(descriptor)
    sys.path += json.loads(sys.argv[2])
    try:
        guards = _warm_up(sys.argv[3])
        from pyrag_sandbox.worker import kernel, worker

        kernel.prepare()
        sys.meta_path.clear()  # nothing is imported from here on; a failed lookup would reveal paths
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLD)
        serve = functools.partial(worker.serve, base_memory=kernel.address_space(), guards=guards)
        zygote = ForkServer(control, serve)
    except BaseException as error:  # reported to the host, since there is no other channel
        reason = f"{type(error).__name__}: {error}".encode()[:1000]
        control.sendall(REPORT.pack(b"fail", len(reason), 0, 0.0) + reason)
        return
    try:
        zygote.run()
    except OSError:
        return  # the host has gone in the middle of a report


if __name__ == "__main__":
    main()
