"""Host's side of one program: serves its calls, watches its limits and concludes its outcome, for all kinds of workers.

Messages of a worker are untrusted: `wire` bounds and parses frames, and this module checks types and whether a message
was requested. The first terminal event determines the outcome: an end message, a limit, an exception in a primitive, or
a dead worker.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Any, Protocol, get_args

from pyrag_sandbox.contract import (
    Absent,
    Call,
    Limits,
    Outcome,
    Primitive,
    PrimitiveError,
    ProgramError,
    Reason,
    Record,
    SandboxError,
    Status,
    Text,
    Usage,
)
from pyrag_sandbox.wire import EXIT_MEMORY, WireError, decode, encode

_STATUSES = frozenset(get_args(Status))
_REASONS = frozenset(get_args(Reason))
_GRACE_SECONDS = 0.05  # time to wait for the exit status of a killed worker
_AHEAD = 2  # factor for calls that were made ahead and dropped; the worker counts the real ones
_MAX_TEXT = 16 * 1024  # characters of an error or traceback, which may go into a prompt
_MESSAGES: Mapping[str, str] = {
    "cpu": "the program used up its {cpu_seconds:g} s of processor time: do less work in loops",
    "wall": "the program used up its {own_seconds:g} s of own time: do less work in loops",
    "deadline": "the program did not end within {deadline} s: make fewer or fewer dependent calls",
    "memory": "the program used more than its {memory_mb} MB of memory: build smaller values",
    "output": "the program printed more than {output_bytes} bytes: print less",
    "calls": "the program made more than {calls} calls: call functions less often",
    "crash": "the interpreter crashed: avoid extremely nested values",
    "syscall": "the program asked the operating system for something that programs may not have",
    "lost": "the program's process was killed from outside, by somebody or by a system short of memory: run it again",
}


class Handles:
    """Table of the objects passed to one program, which is the only way to get them back."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._objects: list[Text | Record] = []
        self._known: dict[int, int] = {}

    def pack(self, value: Any) -> int | dict[str, Any] | None:
        """Return the wire form of a Text or Record, or None for other values."""
        if not isinstance(value, (Text, Record)):
            return None
        known = self._known.get(id(value))
        if known is not None:
            return known
        handle = len(self._objects)
        self._objects.append(value)  # a strong reference, so the id stays the object's own
        self._known[id(value)] = handle
        fields = encode(dict(value.fields), self, self._budget)
        if isinstance(value, Text):
            return {"$T": [handle, encode(value.text, self, self._budget), fields, *self._absent(value.absent)]}
        return {"$R": [handle, fields, value.str_field]}

    def _absent(self, absent: Absent | None) -> list[Any]:
        if absent is None:
            return []
        held = {
            "spellings": list(absent.spellings),
            "parts": list(absent.parts),
            "error": absent.error,
            "message": absent.message,
        }
        return [encode(held, self, self._budget)]

    def unpack(self, handle: int) -> Any:
        """Return the object for a handle. Raises `WireError` for an unknown handle."""
        if not 0 <= handle < len(self._objects):
            raise WireError("a handle that was never given out")
        return self._objects[handle]

    def receive(self, tag: str, parts: list[Any]) -> Any:
        """Refuse a Text or Record that the worker made itself.

        Args:
            tag: "$T" or "$R".
            parts: Decoded data after the tag.

        Raises:
            WireError: Always.
        """
        raise WireError("a program makes no Texts or Records")


class Peer(Protocol):
    """Process that runs the program."""

    def send(self, message: dict[str, Any]) -> None: ...
    def kill(self) -> None: ...


class Conversation:
    """Host's side of one program from start to outcome. Feed `on_message` and `on_dead`, and await `outcome()`."""

    def __init__(self, primitives: Mapping[str, Primitive], limits: Limits, peer: Peer) -> None:
        self._primitives = primitives
        self._limits = limits
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Outcome] = self._loop.create_future()
        self._handles = Handles(limits.value_bytes)
        self._calls: dict[int, Call] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._cancelled: set[int] = set()
        self._output: list[str] = []
        self._output_bytes = 0
        self._reason: Reason = ""
        self._unlocked = ""  # the worker's reason why it could not be locked
        self._start = self._loop.time()
        self._own_used = 0.0
        self._own_since: float | None = self._start
        self._timers = [self._loop.call_later(limits.own_seconds, self._check_own_time)]
        if limits.deadline is not None:
            self._timers.append(self._loop.call_later(limits.deadline, self.kill, "deadline"))

    async def outcome(self) -> Outcome:
        """Return the outcome, or raise a primitive's exception unchanged. The peer may still be alive after that."""
        try:
            return await self._ended
        finally:
            await self._close()

    async def _close(self) -> None:
        self._ended.cancel()
        for timer in self._timers:
            timer.cancel()
        tasks = list(self._serving.values())
        for task in tasks:
            task.cancel()
        if tasks:
            self._peer.kill()
            await asyncio.wait(tasks, timeout=_GRACE_SECONDS)

    # Time

    def _own_time(self) -> float:
        return self._own_used + (0.0 if self._own_since is None else self._loop.time() - self._own_since)

    def _check_own_time(self) -> None:
        """End the program if its own time is used up, else check again later. Time in primitives does not count."""
        remaining = self._limits.own_seconds - self._own_time()
        if remaining <= 0:
            self.kill("wall")
        else:
            self._timers[0] = self._loop.call_later(max(remaining, 0.001), self._check_own_time)

    def _stop_clock(self) -> None:
        self._own_used = self._own_time()
        self._own_since = None

    def _start_clock(self) -> None:
        if not self._serving and self._own_since is None:
            self._own_since = self._loop.time()

    # Messages

    def on_message(self, message: dict[str, Any]) -> None:
        """Handle a message of the worker."""
        if self._ended.done() or self._reason:
            return
        try:
            handler = _HANDLERS[message["op"]]
            handler(self, message)
        except (WireError, KeyError, TypeError, ValueError):
            self.on_bad_frame()

    def on_bad_frame(self) -> None:
        """Handle a frame that no worker would send, which means that the program has reached the wire."""
        self.kill("crash")

    def _on_call(self, message: dict[str, Any]) -> None:
        if len(self._calls) >= self._limits.calls * _AHEAD:
            self.kill("calls")
            return
        call = self._checked_call(message)
        self._calls[call.id] = call
        self._stop_clock()
        task = self._loop.create_task(self._serve(call))
        self._serving[call.id] = task
        task.add_done_callback(lambda task: self._served(call.id, task))

    def _on_cancel(self, message: dict[str, Any]) -> None:
        task = self._serving.get(message["id"])
        if task is not None:
            self._cancelled.add(message["id"])
            task.cancel()

    def _checked_call(self, message: dict[str, Any]) -> Call:
        number, name, line = message["id"], message["name"], message["line"]
        depends = message["depends_on"]
        args, kwargs = decode(message["args"], self._handles), decode(message["kwargs"], self._handles)
        _expect(number not in self._calls)
        _expect(type(name) is str and name in self._primitives)
        _expect(_is_count(number) and _is_count(line) and type(args) is list and type(kwargs) is dict)
        _expect(all(type(key) is str for key in kwargs))
        _expect(type(depends) is list and all(type(other) is int and other in self._calls for other in depends))
        return Call(number, name, tuple(args), kwargs, line, tuple(depends))

    async def _serve(self, call: Call) -> None:
        try:
            value = await self._primitives[call.name](call)
        except PrimitiveError as error:
            reply = {"op": "raise", "id": call.id, "name": error.name, "message": str(error)}
        else:
            reply = {"op": "value", "id": call.id, "value": self._encoded(call, value)}
        if not self._ended.done():
            self._peer.send(reply)

    def _encoded(self, call: Call, value: Any) -> Any:
        try:
            return encode(value, self._handles, self._limits.value_bytes)
        except (TypeError, ValueError) as error:
            raise SandboxError(f"the result of {call.name} cannot be given to a program: {error}") from error

    def _served(self, number: int, task: asyncio.Task[None]) -> None:
        self._serving.pop(number)
        self._start_clock()
        error = None if task.cancelled() else task.exception()
        if self._ended.done() or number in self._cancelled:
            return
        if error is not None:
            self._ended.set_exception(error)
        elif task.cancelled():
            self._ended.cancel()

    def _on_out(self, message: dict[str, Any]) -> None:
        text = message["text"]
        _expect(type(text) is str)
        self._output_bytes += len(text.encode())
        if self._output_bytes > self._limits.output_bytes:
            self.kill("output")
        else:
            self._output.append(text)

    def _on_broken(self, message: dict[str, Any]) -> None:
        self._unlocked = str(message["message"])[:500]  # `on_dead` checks whether it is true

    def _on_end(self, message: dict[str, Any]) -> None:
        status, reason = message["status"], message["reason"]
        _expect(status in _STATUSES and reason in _REASONS and (status == "killed") == bool(reason))
        self._on_out({"text": message["output"]})
        if self._reason:
            return
        variables = decode(message.get("variables", {}), self._handles)
        _expect(type(variables) is dict)
        error, has_value = _program_error(message["error"]), message.get("has_value", False)
        _expect((error is not None) == (status in ("error", "blocked")) and has_value is (status == "ok"))
        self._ended.set_result(
            Outcome(
                status,
                reason,
                value=decode(message.get("value"), self._handles),
                has_value=has_value,
                variables=variables,
                provenance=self._provenance(message.get("provenance", {})),
                items=tuple(map(self._made, message.get("items", ()))),
                output="".join(self._output),
                error=error or self._limit_error(reason),
                calls=self._in_order(message.get("calls")),
                usage=self._usage(_seconds(message.get("cpu"))),
            )
        )

    def _provenance(self, data: Any) -> dict[str, tuple[int, ...]]:
        _expect(type(data) is dict)
        return {name: self._made(ids) for name, ids in data.items()}

    def _made(self, ids: Any) -> tuple[int, ...]:
        _expect(type(ids) is list and all(type(number) is int and number in self._calls for number in ids))
        return tuple(ids)

    def _in_order(self, ids: Any) -> tuple[Call, ...]:
        """Return the calls that the worker lists, in its order; if it lists none, all calls in order of arrival."""
        if ids is None:
            return tuple(self._calls.values())
        _expect(len(set(self._made(ids))) == len(ids))
        return tuple(self._calls[number] for number in ids)

    # Ends

    def kill(self, reason: Reason) -> None:
        """End the program because of a limit. The outcome briefly waits for the worker's exit and usage."""
        if self._ended.done() or self._reason:
            return
        self._reason = reason
        self._peer.kill()
        self._timers.append(self._loop.call_later(_GRACE_SECONDS, self._conclude, 0.0))

    def on_dead(self, status: int, cpu_seconds: float) -> None:
        """Conclude the outcome, since the worker is gone.

        Args:
            status: Exit status from `waitpid`.
            cpu_seconds: Processor time of the worker.
        """
        if self._unlocked and not self._reason and status & 0x7F == signal.SIGKILL:
            self.on_broken_sandbox(f"the worker could not be locked: {self._unlocked}")
            return
        if not self._reason:
            self._reason = reason_of_exit(status)
            if self._reason == "lost" and cpu_seconds >= self._limits.cpu_seconds:
                self._reason = "cpu"  # ended by the kernel's second limit
        self._conclude(cpu_seconds)

    def on_broken_sandbox(self, reason: str, error: type[SandboxError] = SandboxError) -> None:
        """End with an exception, since the sandbox cannot continue.

        Args:
            reason: Message of the exception.
            error: Class of the exception.
        """
        if not self._ended.done():
            self._ended.set_exception(error(reason))

    def _conclude(self, cpu_seconds: float) -> None:
        if not self._ended.done():
            self._ended.set_result(
                Outcome(
                    "killed",
                    self._reason,
                    output="".join(self._output),
                    error=self._limit_error(self._reason),
                    calls=tuple(self._calls.values()),
                    usage=self._usage(cpu_seconds),
                )
            )

    def _limit_error(self, reason: Reason) -> ProgramError | None:
        if not reason:
            return None
        limits = {name: getattr(self._limits, name) for name in Limits.__slots__}
        return ProgramError("LimitExceeded", _MESSAGES[reason].format(**limits), None)

    def _usage(self, cpu_seconds: float) -> Usage:
        own, seconds = self._own_time(), self._loop.time() - self._start
        return Usage(own, seconds, cpu_seconds, len(self._calls), self._output_bytes)


_HANDLERS: Mapping[str, Callable[[Conversation, dict[str, Any]], None]] = {
    "call": Conversation._on_call,
    "cancel": Conversation._on_cancel,
    "out": Conversation._on_out,
    "end": Conversation._on_end,
    "broken": Conversation._on_broken,
}


def reason_of_exit(status: int) -> Reason:
    """Return the reason that an exit status means."""
    killer = status & 0x7F
    if killer in (signal.SIGXCPU, signal.SIGPROF):
        return "cpu"
    if killer == signal.SIGSYS:
        return "syscall"
    if killer == signal.SIGKILL:
        return "lost"  # no locked program can send it; the memory limit makes the worker exit itself
    if not killer and status >> 8 == EXIT_MEMORY:
        return "memory"
    return "crash"


def _expect(condition: bool) -> None:
    if not condition:
        raise WireError("a message of the wrong shape")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _program_error(data: Any) -> ProgramError | None:
    if data is None:
        return None
    line = data["line"]
    texts = [data[name] for name in ("type", "message", "source_line", "traceback")]
    _expect(all(type(text) is str for text in texts) and (line is None or _is_count(line)))
    kind, problem, source_line, traceback = (text[:_MAX_TEXT] for text in texts)
    return ProgramError(kind, problem, line, source_line, traceback)


def _seconds(value: Any) -> float:
    return value if type(value) is float and 0 <= value < 1e6 else 0.0
