"""Calls of tools: arguments are checked, the function runs within its time limit, and its result is checked.

Every failure becomes a reply, because the program receives it as an exception that its author can handle, and because
recordings must contain it. This covers arguments of any type and number, results of any type and size, exceptions of
any kind, and functions that never finish. It neither limits a function's memory nor ends a thread that exceeds its time
limit.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any

import msgspec

from pyrag.retrieval.checked import checked
from pyrag.tools.allowed_types import is_passages
from pyrag.tools.tool import Sourced, Tool, ToolError, returned_type, signature_of
from pyrag.trace.model import Passage
from pyrag_sandbox.wire import encode

MAX_RESULT_BYTES = 900_000  # size of a result; slightly less than may cross into a sandbox
MAX_DOCUMENTS = 100
MAX_SOURCES = 10
_MAX_MESSAGE = 600  # characters of an error message
_PATH = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\"<>|:,;()]+)+[/\\]?")
_OWN_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError, TimeoutError, PermissionError)


@dataclass(frozen=True, slots=True)
class ToolReply:
    """Outcome of a call: a value, documents, or an error that the program receives as an exception.

    Attributes:
        value: Plain data.
        passages: Documents that the function returned, or the sources of the value.
        documents: Whether the passages themselves are the result.
        error: Message of the exception; empty if there was none.
        error_type: Name of the exception that the program sees.
        note: Warning for the user.
        refused: Whether the call certainly had no effect: its arguments were wrong, or the function raised `ToolError`.
    """

    value: Any = None
    passages: tuple[Passage, ...] = ()
    documents: bool = False
    error: str = ""
    error_type: str = ""
    note: str = ""
    refused: bool = False


class _BrokenOffError(ToolError):
    """Error of a function that ended with something other than an `Exception`. It may have had effects."""


async def call_tool(tool: Tool[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> ToolReply:
    """Return the outcome of a call. Raises nothing, unless it is cancelled.

    Args:
        tool: The tool.
        args: Positional arguments of the program, as plain data.
        kwargs: Keyword arguments of the program, as plain data.
    """
    try:
        values = _arguments(tool, args, kwargs)
    except TypeError as error:
        return ToolReply(error=f"{tool.name}() {error}", error_type="TypeError", refused=True)
    try:
        async with asyncio.timeout(tool.timeout):
            result = await _run(tool.function, values, tool.name)
    except TimeoutError as error:
        if error.args:  # raised by the function itself
            return _failed(tool, error)
        message = f"{tool.name}() took longer than {tool.timeout:g} s: ask it for less"
        return ToolReply(error=message, error_type="TimeoutError")
    except Exception as error:  # whatever the function raises
        return _failed(tool, error)
    try:
        return _reply(tool, result)
    except Exception as error:  # whatever inspecting the result raises
        return _misshapen(tool, error)


def _arguments(tool: Tool[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Bind and convert the arguments. Raises `TypeError` with a message for the program's author."""
    signature, hints = signature_of(tool.function, tool.name)
    bound = signature.bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        try:
            bound.arguments[name] = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise TypeError(f"cannot take this {name!r}: {str(error)[:_MAX_MESSAGE]}") from error
    return bound


async def _run(function: Callable[..., Any], values: inspect.BoundArguments, name: str) -> Any:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await _guarded(function(*values.args, **values.kwargs))
    result = await in_own_thread(lambda: function(*values.args, **values.kwargs), f"pyrag-tool-{name}")
    return await _guarded(result) if inspect.isawaitable(result) else result


async def _guarded(work: Any) -> Any:
    """Await a function's work. Convert exceptions that would end the event loop or look like a cancelled question."""
    try:
        return await work
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise _BrokenOffError("it cancelled itself") from None
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        raise _BrokenOffError(f"{type(error).__name__}: {error}") from error


async def in_own_thread(function: Callable[[], Any], name: str = "pyrag-callback") -> Any:
    """Run a function in a daemon thread, so that one that never ends blocks neither a pool nor the process's exit.

    Args:
        function: Function without arguments.
        name: Name of the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result, failure = None, None
        try:
            result = function()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(settle, result, failure)

    Thread(target=contextvars.copy_context().run, args=(work,), name=name, daemon=True).start()
    result, error = await done
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        raise error
    if error is not None:  # asyncio cannot pass on exceptions of these kinds
        raise _BrokenOffError(f"{type(error).__name__}: {error}") from error
    return result


def _reply(tool: Tool[..., Any], result: Any) -> ToolReply:
    """Return a result as a reply. Raises `TypeError`, `ValueError` or `msgspec.ValidationError` for a wrong type."""
    sources: Sequence[Passage] = ()
    if isinstance(result, Sourced):
        result, sources = result.value, checked(result.sources, MAX_SOURCES)
    wanted = returned_type(tool)
    if is_passages(wanted):
        documents = checked(msgspec.convert(result, list[Passage]), MAX_DOCUMENTS)
        return ToolReply(passages=tuple(documents), documents=True, note=_note(tool, documents.notes))
    value = msgspec.to_builtins(result, str_keys=True)
    msgspec.convert(value, wanted)
    encode(value, _NoHandles(), MAX_RESULT_BYTES)
    value = msgspec.json.decode(msgspec.json.encode(value))  # as in a recording, where tuples are lists
    return ToolReply(value, tuple(sources))


def _note(tool: Tool[..., Any], notes: Sequence[str]) -> str:
    return f"the tool {tool.name}: {'; '.join(notes)}" if notes else ""


def _failed(tool: Tool[..., Any], error: Exception) -> ToolReply:
    """Return a function's exception as a reply, without the host's paths that its message may contain."""
    if isinstance(error, ToolError):
        message = f"{tool.name}(): {_clipped(str(error))}"
        return ToolReply(error=message, error_type=ToolError.__name__, refused=not isinstance(error, _BrokenOffError))
    kind = type(error).__name__
    message = _PATH.sub(lambda match: re.split(r"[/\\]", match[0].rstrip("/\\"))[-1], _message_of(error))
    name = kind if type(error).__module__ == "builtins" and isinstance(error, _OWN_ERRORS) else ToolError.__name__
    shown = message if name == kind else f"{kind}: {message}" if message else kind
    return ToolReply(error=f"{tool.name}() failed: {_clipped(shown)}", error_type=name)


def _misshapen(tool: Tool[..., Any], error: Exception) -> ToolReply:
    if isinstance(error, ValueError) and not isinstance(error, msgspec.ValidationError | UnicodeError):
        message = f"the result of {tool.name}() is too large or not plain data ({error}): return less, as plain values"
        return ToolReply(error=_clipped(message), error_type="ValueError")
    message = f"{tool.name}() returned something else than it promises ({_clipped(_message_of(error))})"
    return ToolReply(error=message, error_type=ToolError.__name__, note=f"the tool {message}")


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _clipped(text: str) -> str:
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 1]}…"


class _NoHandles:
    """Table of handles that is always empty: tools only return plain data."""

    def pack(self, value: Any) -> None:
        return None

    def unpack(self, handle: int) -> Any:
        raise LookupError(handle)

    def receive(self, tag: str, parts: list[Any]) -> Any:
        raise LookupError(tag)
