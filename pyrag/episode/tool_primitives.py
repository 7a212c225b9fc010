"""The caller's functions as primitives of a program: each call is a step with budget, memo, recording and sources.

A recording holds each call's arguments as the program wrote them, and the reply, so a replay needs no tools.
`pyrag.tools.calls` checks arguments and results and runs the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from pyrag.episode.episode import Episode
from pyrag.episode.flow.guard import guarded
from pyrag.episode.program_run import Primitive, ProgramRun
from pyrag.episode.program_values import UNKNOWN_ERROR, record
from pyrag.episode.recovery import ids_of
from pyrag.episode.requests import TOOL, canonical
from pyrag.errors import RepeatedEffectError, ReplayError
from pyrag.tools.calls import ToolReply, call_tool
from pyrag.tools.tool import Tool, names_passages
from pyrag_sandbox import Call, PrimitiveError, Record, Text

MAX_ARGUMENT_BYTES = 256 * 1024  # all arguments of one call together
MAX_OUTPUT = 2_000  # characters of a result that a step shows
_MAX_QUERY = 500  # characters of the arguments that a step shows


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """Tool that a question's programs may call. Without `tool`, its calls are replayed from a recording."""

    name: str
    effects: bool = False
    tool: Tool[..., Any] | None = None
    repeatable: bool = False

    @property
    def returns_passages(self) -> bool:
        """True if the tool returns passages or values taken from them; a replay finds out from the replies."""
        return self.tool is not None and names_passages(self.tool)


def offered_tools(tools: Iterable[Tool[..., Any]]) -> tuple[OfferedTool, ...]:
    """Return tools in the form that `offer` accepts."""
    return tuple(OfferedTool(tool.name, tool.effects, tool, tool.repeatable) for tool in tools)


def recorded_tools(names: Mapping[str, bool]) -> tuple[OfferedTool, ...]:
    """Return the tools of a recording, from `Recording.tools`."""
    return tuple(OfferedTool(name, effects) for name, effects in names.items())


def offer(episode: Episode, tools: Sequence[OfferedTool]) -> None:
    """Let an episode's programs call tools.

    Args:
        episode: Episode of the question.
        tools: Tools to offer.
    """
    primitives: dict[str, Primitive] = {tool.name: partial(_call, tool) for tool in tools}
    episode.tools = {tool.name: tool.effects for tool in tools}
    episode.more = {**episode.more, **primitives}


async def _call(offered: OfferedTool, program_run: ProgramRun, call: Call) -> Any:
    episode = program_run.episode
    args = [_plain(episode, call, arg) for arg in call.args]
    kwargs = {name: _plain(episode, call, value) for name, value in call.kwargs.items()}
    query = _shown(call.name, args, kwargs)
    program_run.refuse_unknown(call, query)
    await episode.requests.until_certain()
    step = program_run.start(call, query)
    request = {"args": args, "kwargs": kwargs}
    if offered.effects:
        work = _with_effects(program_run, call, offered, request, query)
    else:
        work = _looked_up(episode, offered, request)
    reply, memo = await program_run.watched(step, work)
    if reply.documents or reply.passages or offered.returns_passages:
        episode.flow.delivered.add(call.name)
    if reply.error:
        program_run.finish(step, error=reply.error, memo=memo)
        raise PrimitiveError(reply.error, reply.error_type)
    passages = episode.keep_passages(reply.passages, f"the tool {call.name}")
    output = "" if reply.documents else _clipped(msgspec.json.encode(reply.value).decode(), MAX_OUTPUT)
    mode = "documents" if reply.documents else "data"
    program_run.finish(step, output=output, passages=ids_of(passages), mode=mode, memo=memo)
    return [record(passage) for passage in passages] if reply.documents else reply.value


async def _looked_up(episode: Episode, offered: OfferedTool, request: dict[str, Any]) -> tuple[ToolReply, bool]:
    """Return the reply of a tool without effects, and True if it came from the memo. Failures are not remembered."""
    role = f"{TOOL}{offered.name}"
    reply, memo = await episode.requests.ask(role, request, partial(_run, offered, request), ToolReply)
    if reply.error:
        episode.memo.forget(role, request)
    _warn(episode, reply)
    return reply, memo


async def _with_effects(
    program_run: ProgramRun, call: Call, offered: OfferedTool, request: dict[str, Any], shown: str
) -> tuple[ToolReply, bool]:
    """Return a tool's reply, and True if it repeats the reply of an earlier program's call.

    Raises:
        RepeatedEffectError: The call would repeat an earlier effect.
        FlowError: The call depends on passages, and is not allowed.
    """
    episode = program_run.episode
    role = f"{TOOL}{offered.name}"
    key = canonical(role, request)
    refusal: RepeatedEffectError | None = None
    try:
        reply = episode.effects.recalled(offered.name, key, shown, repeatable=offered.repeatable)
    except RepeatedEffectError as error:
        if offered.tool is not None:
            raise
        reply, refusal = None, error  # unless the recording holds the call: then the tool was repeatable
    if reply is not None:
        return reply, True

    async def make() -> ToolReply:
        made = episode.effects.begin(offered.name, key, shown)
        made.reply = reply = await episode.requests.fresh(role, request, partial(_run, offered, request), ToolReply)
        if reply.refused:
            episode.effects.undo(made)
        return reply

    try:
        reply = await guarded(program_run, call, request["args"], request["kwargs"], make)
    except ReplayError as error:
        raise refusal or error from None
    _warn(episode, reply)
    return reply, False


async def _run(offered: OfferedTool, request: dict[str, Any]) -> ToolReply:
    if offered.tool is None:
        raise ReplayError(f"the recording holds no call of the tool {offered.name}: record again")
    return await call_tool(offered.tool, request["args"], request["kwargs"])


def _warn(episode: Episode, reply: ToolReply) -> None:
    if reply.note:
        episode.warn(reply.note)


def _plain(episode: Episode, call: Call, value: Any) -> Any:
    """Convert a program's value to plain data: answers to texts, passages to dicts. Raises `PrimitiveError`."""
    if isinstance(value, Text):
        if value.absent is not None:
            raise PrimitiveError(
                f"an argument of {call.name}() is an unknown answer: test is_known(…) first", UNKNOWN_ERROR
            )
        return value.text
    if isinstance(value, Record):
        passage = episode.passages.get(str(value.fields.get("id")))
        return dict(value.fields) if passage is None else msgspec.to_builtins(passage)
    if isinstance(value, list | tuple):
        return [_plain(episode, call, item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise PrimitiveError(f"{call.name}() takes dicts with text as keys only", "TypeError")
        return {key: _plain(episode, call, item) for key, item in value.items()}
    return value


def _shown(name: str, args: list[Any], kwargs: dict[str, Any]) -> str:
    """Return the arguments in the form that steps show. Raises `PrimitiveError` if they are too large."""
    try:
        size = len(msgspec.json.encode([args, kwargs]))
    except (UnicodeEncodeError, TypeError, OverflowError) as error:
        raise PrimitiveError(f"{name}() cannot take these arguments: {error}", "TypeError") from error
    if size > MAX_ARGUMENT_BYTES:
        raise PrimitiveError(f"{name}() takes at most {MAX_ARGUMENT_BYTES} bytes of arguments", "ValueError")
    if len(args) == 1 and not kwargs and isinstance(args[0], str):
        return _clipped(args[0], _MAX_QUERY)
    return _clipped(", ".join((*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items()))), _MAX_QUERY)


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
