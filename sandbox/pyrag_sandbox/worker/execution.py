"""Execution of one program, from source to end message: parse, check, compile, run, report.

A `Session` is the program's only way out. It is the guards' host (refusals, output), the transport of calls, and the
place where a program ends, since `finish` never returns.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, MappingProxyType
from typing import Any, NoReturn

from pyrag_sandbox.contract import Limits
from pyrag_sandbox.dataflow import plan as dataflow
from pyrag_sandbox.dataflow.units import Plan
from pyrag_sandbox.policy.guards import Guards
from pyrag_sandbox.policy.policy import FILENAME, Refused, check_program, compile_module, compile_open
from pyrag_sandbox.wire import WireError, decode, encode, encode_counted
from pyrag_sandbox.worker.loop_scheduler import run as run_plan
from pyrag_sandbox.worker.tracebacks import program_frames
from pyrag_sandbox.worker.transport import Execution
from pyrag_sandbox.worker.values import AbsentValue, RecordValue, TextValue, ValueStore

_FLUSH_BYTES = 16 * 1024
_MESSAGE_CHARS = 2000
_TRACEBACK_LINES = 20


@dataclass(frozen=True, slots=True)
class Job:
    """Job from the host, which crosses the wire as a plain object."""

    source: str
    primitives: tuple[str, ...]
    limits: Limits
    result: str = "final_answer"
    concurrent: bool = True
    policy: bool = True
    inputs: Any = field(default_factory=dict)  # as they crossed the wire


class Finished(BaseException):
    """Exception for a program that has ended while its Python frames still exist."""


def _is_exhaustion(error: BaseException) -> bool:
    """Return True if memory ran out. Some C code (`deque`) then fails without setting an exception."""
    text = error.args[0] if type(error) is SystemError and error.args else None
    forgotten = type(text) is str and text.endswith("returned NULL without setting an exception")
    return forgotten or isinstance(error, MemoryError)


class Session(ABC):
    """Program's side of the conversation with the host."""

    def __init__(self, job: Job, errors: Mapping[str, type[Exception]] = MappingProxyType({})) -> None:
        self.job = job
        self._errors = dict(errors)
        self.values = ValueStore(self._error)
        self._output: list[str] = []
        self._pending_bytes = 0
        self._output_bytes = 0

    @abstractmethod
    def send_frame(self, message: dict[str, Any]) -> None:
        """Send one message to the host, at the latest when `flush` or `receive_frame` is called.

        Raises `WireError` if it is too large.
        """

    @abstractmethod
    def flush(self) -> None:
        """Send all pending messages."""

    @abstractmethod
    def receive_frame(self) -> dict[str, Any]:
        """Wait for the host's next message."""

    @abstractmethod
    def finish(self, message: dict[str, Any]) -> NoReturn:
        """Send the last message and end the program."""

    # What guards need

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """End the program as blocked.

        Args:
            message: The problem, for the program's author.
            line: Line of the program, from 1; None if unknown.
        """
        self.finish(self.end("blocked", error=self.plain_error("Refused", message, line)))

    def caught(self, error: BaseException) -> None:
        """End the program if it is about to handle exhausted memory."""
        if _is_exhaustion(error):
            self.finish(self.end("killed", reason="memory"))

    def emit(self, text: str) -> None:
        """Send output, in program order."""
        size = len(text.encode())
        self._output_bytes += size
        if self._output_bytes > self.job.limits.output_bytes:
            self.finish(self.end("killed", reason="output"))
        self._output.append(text)
        self._pending_bytes += size
        if self._pending_bytes > _FLUSH_BYTES:
            self._send_output()
            self.flush()

    def _send_output(self) -> None:
        if self._output:
            self.send_frame({"op": "out", "text": self._take_output()})

    def _take_output(self) -> str:
        text = "".join(self._output)
        self._output.clear()
        self._pending_bytes = 0
        return text

    # Calls

    def send(
        self,
        call_id: int,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        line: int,
        depends_on: tuple[int, ...],
    ) -> None:
        """Send a call without waiting for its reply.

        Args:
            call_id: Number of the call, from 0 in order of dispatch.
            name: Name of the primitive.
            args: Positional arguments.
            kwargs: Keyword arguments.
            line: Line of the program; 0 if unknown.
            depends_on: Ids of earlier calls that it may depend on, ascending.

        Raises:
            TypeError: An argument has a type that cannot cross.
            ValueError: An argument is too large or otherwise cannot cross.
        """
        self._send_output()
        budget = self.job.limits.value_bytes
        message = {
            "op": "call",
            "id": call_id,
            "name": name,
            "args": encode(list(args), self.values, budget),
            "kwargs": encode(kwargs, self.values, budget),
            "line": line,
            "depends_on": depends_on,
        }
        try:
            self.send_frame(message)
        except WireError as error:
            raise ValueError(f"the arguments of {name} cannot cross: {error}") from None

    def cancel(self, call_id: int) -> None:
        """Tell the host that the reply to a call is no longer needed."""
        self.send_frame({"op": "cancel", "id": call_id})

    def exhausted(self, calls: tuple[int, ...]) -> NoReturn:
        """End the program because it makes more calls than allowed."""
        self.finish(self.end("killed", reason="calls", calls=calls))

    def receive(self) -> tuple[int, Any]:
        """Return the next reply: a call's id with its value, or with the exception to raise at the call."""
        message = self.receive_frame()
        if message["op"] == "value":
            return message["id"], decode(message["value"], self.values)
        return message["id"], self._error(message["name"])(message["message"])

    def _error(self, name: str) -> type[Exception]:
        known = getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, Exception) and known not in _TAKES_MORE:
            return known
        return self._errors.get(name) or self._errors.setdefault(name, type(name, (Exception,), {}))

    # The last message

    def end(self, status: str, *, reason: str = "", error: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Return a last message, including output that was not sent yet.

        Args:
            status: One of "ok", "error", "blocked" and "killed".
            reason: Limit that was exceeded, if the status is "killed".
            error: Result of `plain_error` or `describe`.
            **more: Additional fields: value, variables, provenance, calls.
        """
        return {"op": "end", "status": status, "reason": reason, "error": error, "output": self._take_output(), **more}

    def plain_error(self, kind: str, message: str, line: int | None) -> dict[str, Any]:
        """Return an error without a traceback, in its wire form.

        Args:
            kind: Name of the exception's type.
            message: The problem, for the program's author.
            line: Line of the program, from 1; None if unknown.
        """
        source_line = _source_line(self.job.source, line)
        return {"type": kind, "message": message, "line": line, "source_line": source_line, "traceback": ""}


_TAKES_MORE = frozenset({UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError})


def run_job(job: Job, session: Session, guards: Guards) -> dict[str, Any]:
    """Run the program and return its last message, unless `session.finish` ends it before.

    Args:
        job: Source, primitives and limits.
        session: Connection to the host.
        guards: New guards that no other program has used.
    """
    try:
        plan = _planned(job, guards)
    except Refused as refused:
        return session.end("blocked", error=session.plain_error("Refused", refused.message, refused.line))
    except SyntaxError as error:
        if str(error.msg).startswith("too many"):  # too many parentheses, levels of indentation or nested blocks
            message = f"{error.msg}: split the expression over several statements"
            return session.end("blocked", error=session.plain_error("Refused", message, error.lineno))
        return session.end("error", error=session.plain_error(type(error).__name__, str(error.msg), error.lineno))
    return _executed(job, session, plan, guards)


def _planned(job: Job, guards: Guards) -> Plan:
    try:
        tree = _parsed(job)
        compile(tree, FILENAME, "exec", dont_inherit=True)  # for errors that Python only reports for a whole program
        return dataflow.plan(tree, frozenset(job.primitives), guards.helpers.names, frozenset(guards.helpers.errors))
    except (RecursionError, MemoryError):
        raise Refused("nested too deeply: split the expression over several statements") from None


def _parsed(job: Job) -> ast.Module:
    limits = job.limits
    size = len(job.source.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise Refused(f"the source has {size} bytes, over the limit of {limits.source_bytes}: write a shorter program")
    tree = _syntax(job.source)
    if job.policy:
        check_program(tree, primitives=set(job.primitives), max_nodes=limits.nodes, max_depth=limits.depth)
    return tree


def _syntax(source: str) -> ast.Module:
    try:
        return ast.parse(source, FILENAME)
    except UnicodeEncodeError:
        raise SyntaxError("the source holds characters that are not valid text (lone surrogates)") from None
    except ValueError as error:
        raise SyntaxError(str(error)) from None


def _executed(job: Job, session: Session, plan: Plan, guards: Guards) -> dict[str, Any]:
    namespace = guards.namespace(session) if job.policy else guards.open_namespace(session)
    own = {*namespace, *job.primitives}
    namespace.update(decode(job.inputs, session.values))

    def compile_unit(tree: ast.Module) -> CodeType:
        try:
            return compile_module(tree) if job.policy else compile_open(tree)
        except Refused as refused:  # the program could catch an exception
            session.refuse(refused.message, refused.line)

    execution = run_plan(
        plan,
        compile_unit=compile_unit,
        namespace=namespace,
        primitives=job.primitives,
        transport=session,
        emit=session.emit,
        concurrent=job.concurrent and job.policy,
        atoms=(TextValue, AbsentValue, RecordValue),
        filename=FILENAME,
        max_calls=job.limits.calls,
    )
    return _reported(job, session, execution, {name: namespace[name] for name in namespace if name not in own})


# Reports


def _reported(job: Job, session: Session, execution: Execution, names: Mapping[str, Any]) -> dict[str, Any]:
    error = execution.exception
    if error is not None and _is_exhaustion(error):
        return session.end("killed", reason="memory")
    if isinstance(error, Finished):
        raise error
    variables = _variables(job, session, names)
    origins = execution.provenance
    report: dict[str, Any] = {
        "variables": variables,
        "provenance": {name: origins[name] for name in (*variables, job.result) if name in origins},
        "calls": execution.calls,
        "items": execution.elements.get(job.result, ()),
    }
    if error is not None:
        return session.end("error", error=describe(error, job.source), **report)
    if job.result not in names:
        message = f"the program ended without setting {job.result}: assign the result to {job.result}"
        return session.end("error", error=session.plain_error("MissingResult", message, None), **report)
    try:
        value = encode(names[job.result], session.values, job.limits.value_bytes)
    except (TypeError, ValueError) as problem:
        wire_error = session.plain_error(type(problem).__name__, f"{job.result}: {problem}", None)
        return session.end("error", error=wire_error, **report)
    return session.end("ok", value=value, has_value=True, **report)


def _variables(job: Job, session: Session, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the program's other names whose values can cross, as many as fit."""
    variables: dict[str, Any] = {}
    budget = job.limits.value_bytes
    for name, value in names.items():
        if name == job.result or name.startswith("_"):
            continue
        try:
            variables[name], used = encode_counted(value, session.values, budget)
        except (TypeError, ValueError):
            continue
        budget -= used
    return variables


def describe(error: BaseException, source: str) -> dict[str, Any]:
    """Describe an exception for the program's author, with only the program's own lines and no path of the host.

    Args:
        error: The exception, with its traceback.
        source: The program, to quote lines from.
    """
    lines = program_frames(error.__traceback__, FILENAME)
    line = lines[-1][0] if lines else None
    name = type(error).__name__
    message = _message(error)
    shown = [
        f'  File "{FILENAME}", line {at}, in {where}\n    {_source_line(source, at).strip()}' for at, where in lines
    ]
    if len(shown) > _TRACEBACK_LINES:
        half = _TRACEBACK_LINES // 2
        shown = [*shown[:half], f"  ... {len(shown) - 2 * half} more ...", *shown[-half:]]
    head = "Traceback (most recent call last):\n" if shown else ""
    tail = f"{name}: {message}" if message else name
    text = head + "".join(part + "\n" for part in shown) + tail
    return {
        "type": name,
        "message": message,
        "line": line,
        "source_line": _source_line(source, line),
        "traceback": text,
    }


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(the message could not be written)"
    return text[:_MESSAGE_CHARS].encode("utf-8", "backslashreplace").decode()


def _source_line(source: str, line: int | None) -> str:
    if line is None or line < 1:
        return ""
    lines = source.split("\n")
    text = lines[line - 1] if line <= len(lines) else ""
    return text[:200].rstrip("\r").encode("utf-8", "backslashreplace").decode()
