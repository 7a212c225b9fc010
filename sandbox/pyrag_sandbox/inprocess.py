"""The backend without a process: the policy only, in a thread of the host. For debugging programs that you trust.

A program cannot be killed here: at a limit it is told to stop, and one that does not listen (a long C call) keeps its
thread. Memory and crashes are the host's. Everything else is the same, values crossing as they would a wire.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from .contract import Limits, Outcome, Primitive
from .conversation import Conversation
from .execution import Finished, Job, Session, run_job
from .guards import Guards
from .wire import pack_frame, unpack_body

_HEADER_BYTES = 4


class _ThreadSession(Session):
    """A session whose host is another thread of this process."""

    def __init__(self, job: Job, peer: _ThreadPeer) -> None:
        super().__init__(job)
        self._peer = peer
        self._over = False

    def send_frame(self, message: dict[str, Any]) -> None:
        self._check()
        self._peer.deliver(pack_frame(message, self.job.limits.frame_bytes)[_HEADER_BYTES:])

    def flush(self) -> None:
        pass

    def receive_frame(self) -> dict[str, Any]:
        body = self._peer.inbox.get()
        if body is None:
            self._over = True
            raise Finished
        return unpack_body(body)

    def finish(self, message: dict[str, Any]) -> NoReturn:
        self._peer.ended = True
        self.send_frame(message)
        self._over = True
        raise Finished

    def caught(self, error: BaseException) -> None:
        self._check()
        if isinstance(error, Finished):
            raise error
        super().caught(error)

    def emit(self, text: str) -> None:
        self._check()
        super().emit(text)

    def _check(self) -> None:
        """A program that swallowed its end (in a `finally`, say) gets it again at the next turn."""
        if self._over or self._peer.killed:
            raise Finished


class _ThreadPeer:
    """The conversation's view of the thread."""

    def __init__(self, job: Job) -> None:
        self.inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.killed = False
        self.ended = False
        self._job = job
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="pyrag-program", daemon=True)

    def start(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._thread.start()

    def send(self, message: dict[str, Any]) -> None:
        self.inbox.put(pack_frame(message, 1 << 31)[_HEADER_BYTES:])

    def kill(self) -> None:
        if self.killed:
            return
        self.killed = True
        self.inbox.put(None)
        if not self.ended and self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Finished))

    # In the thread

    def deliver(self, body: bytes) -> None:
        self._post(self._conversation.on_message, unpack_body(body))

    def _post(self, function: Any, *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _run(self) -> None:
        try:
            session = _ThreadSession(self._job, self)
            session.finish(run_job(self._job, session, Guards()))
        except Finished:
            return
        finally:
            self._post(self._conversation.on_dead, 1 << 8, 0.0)


async def run_in_process(job: dict[str, Any], primitives: Mapping[str, Primitive], limits: Limits) -> Outcome:
    """One program in a thread of this process."""
    if not job["policy"]:
        raise ValueError("the in-process backend has no wall but the policy: it cannot be switched off")
    peer = _ThreadPeer(Job(**{**job, "limits": limits, "primitives": tuple(primitives)}))
    conversation = Conversation(primitives, limits, peer)
    peer.start(conversation)
    try:
        return await conversation.outcome()
    finally:
        peer.kill()
