"""Ways of running a program for the dataflow tests: as plain Python, and through plan and scheduler.

The primitives are functions of their arguments; some queries raise. `FakeHost` is the fake host: it notes what is in
flight and replies in an order chosen by the test.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pyrag_sandbox.dataflow.plan import plan
from pyrag_sandbox.worker.loop_scheduler import run
from pyrag_sandbox.worker.tracebacks import program_frames
from pyrag_sandbox.worker.transport import Execution

PRIMITIVES = ("retrieve", "answer")
Call = tuple[str, tuple[Any, ...], dict[str, Any], int]
Changes = dict[int, str]  # program-order index of a call -> what its result becomes


class PrimitiveFailedError(Exception):
    pass


class Stop(BaseException):
    """Stands for a refusal."""


def reply(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args or not isinstance(args[0], str):
        raise TypeError(f"{name} needs a query, not {noted(args)} {noted(kwargs)}")
    query = args[0]
    mark = zlib.crc32(repr((name, args, kwargs)).encode())
    if mark % 61 == 0 or "fail" in query:
        raise PrimitiveFailedError(f"{name} of {query}")
    if name == "retrieve":
        return [f"{'abcde'[mark % 5]}{query[:4]}", f"d{mark % 7}"][: 1 + mark % 2]
    return f"{'abcdefg'[mark % 7]}{query[:6]}"


@dataclass
class Result:
    variables: dict[str, str]
    output: str
    error: tuple[str, str, list[tuple[int, str]]] | None
    calls: list[Call]
    provenance: dict[str, tuple[int, ...]] = field(default_factory=dict)  # indices into calls
    depends: list[tuple[int, ...]] = field(default_factory=list)  # likewise
    execution: Execution | None = None


def visible(namespace: dict[str, Any]) -> dict[str, str]:
    hidden = {"__builtins__", "__annotations__", "__conditional_annotations__", "print", *PRIMITIVES}
    return {k: repr(v) for k, v in namespace.items() if k not in hidden and not callable(v) and " at 0x" not in repr(v)}


def outcome_of(error: BaseException | None) -> tuple[str, str, list[tuple[int, str]]] | None:
    if error is None:
        return None
    return type(error).__name__, str(error), program_frames(error.__traceback__)


def plainly(source: str, change: Changes | None = None) -> Result:
    """The reference: exec, calls answered at once."""
    calls: list[Call] = []
    output: list[str] = []

    def primitive(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append((name, noted(args), noted(kwargs), program_line()))
            value = reply(name, args, kwargs)
            return altered(value, (change or {}).get(len(calls) - 1))

        return call

    namespace: dict[str, Any] = {name: primitive(name) for name in PRIMITIVES}
    namespace["print"] = lambda *args: output.append(" ".join(map(str, args)) + "\n")
    error: BaseException | None = None
    try:
        exec(compile(source, "<program>", "exec"), namespace)
    except Exception as caught:
        error = caught
    return Result(visible(namespace), "".join(output), outcome_of(error), calls)


def noted(value: Any) -> Any:
    """A copy of arguments; what equals nothing but itself as its type's name."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(noted, value))
    return type(value).__name__ if callable(value) or isinstance(value, re.Match) else copy.deepcopy(value)


def program_line() -> int:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != "<program>":
        frame = frame.f_back
    return frame.f_lineno if frame else 0


def altered(value: Any, text: str | None) -> Any:
    if text is None:
        return value
    return [text, *value] if isinstance(value, list) else text


class FakeHost:
    """The host. `choose` picks which of the calls in flight is answered next."""

    def __init__(self, choose: Callable[[Sequence[int]], int] = lambda ids: ids[0]) -> None:
        self.choose = choose
        self.in_flight: dict[int, tuple[str, tuple[Any, ...], dict[str, Any]]] = {}
        self.sent: list[Call] = []
        self.depends: list[tuple[int, ...]] = []
        self.cancelled: list[int] = []
        self.rounds: list[list[str]] = []  # queries in flight at each reply
        self.most = 0
        self.respond = reply

    def send(
        self,
        call_id: int,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        line: int,
        depends_on: tuple[int, ...],
    ) -> None:
        assert call_id == len(self.sent)
        self.sent.append((name, noted(args), noted(kwargs), line))
        self.depends.append(depends_on)
        self.in_flight[call_id] = (name, copy.deepcopy(args), kwargs)
        self.most = max(self.most, len(self.in_flight))

    def receive(self) -> tuple[int, Any]:
        assert self.in_flight, "waiting although nothing is in flight"
        self.rounds.append([str(*args[:1]) for _, args, _ in self.in_flight.values()])
        call_id = self.choose(list(self.in_flight))
        name, args, kwargs = self.in_flight.pop(call_id)
        try:
            return call_id, self.respond(name, args, kwargs)
        except BaseException as error:
            return call_id, error.with_traceback(None)

    def flush(self) -> None:
        pass

    def cancel(self, call_id: int) -> None:
        del self.in_flight[call_id]
        self.cancelled.append(call_id)


def scheduled(
    source: str,
    host: FakeHost | None = None,
    *,
    concurrent: bool = True,
    pure: frozenset[str] = frozenset(),
    **names: Any,
) -> Result:
    host = host or FakeHost()
    output: list[str] = []
    namespace: dict[str, Any] = dict(names)
    namespace["print"] = lambda *args: namespace["%write"](" ".join(map(str, args)) + "\n")
    execution = run(
        plan(ast.parse(source), frozenset(PRIMITIVES), pure),
        compile_unit=lambda tree: compile(tree, "<program>", "exec"),
        namespace=namespace,
        primitives=PRIMITIVES,
        transport=host,
        emit=output.append,
        concurrent=concurrent,
    )
    assert not host.in_flight or isinstance(execution.exception, Stop)
    assert not [n for n in namespace if n.startswith("%")]
    place = {call_id: index for index, call_id in enumerate(execution.calls)}
    return Result(
        visible(namespace),
        "".join(output),
        outcome_of(execution.exception),
        [host.sent[i] for i in execution.calls],
        {n: tuple(sorted(place[i] for i in ids)) for n, ids in execution.provenance.items()},
        [tuple(sorted(place[i] for i in host.depends[call])) for call in execution.calls],
        execution,
    )


def at_random(seed: int) -> Callable[[Sequence[int]], int]:
    return random.Random(seed).choice
