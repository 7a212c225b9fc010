"""Checks of a tool: the promises that programs rely on (see docs/tools.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.testing.checks import expect, shown
from pyrag.tools.calls import ToolReply, call_tool
from pyrag.tools.tool import Tool, as_tools, describe, signature_of

_ODD_TEXTS = ("", "\x00", "../../etc/passwd", "'; DROP TABLE x; --", "$(reboot)", "x" * 20_000, "星河 👍", "unknown")


@dataclass(frozen=True, slots=True)
class ToolCase:
    """Tool, with calls that succeed.

    Attributes:
        function: The function, or the tool made from it by `pyrag.extend.tool`.
        calls: Keyword arguments of at least one call that has a result.
    """

    function: Callable[..., Any]
    calls: Sequence[Mapping[str, Any]] = field(default_factory=lambda: [{}])

    @property
    def tool(self) -> Tool[..., Any]:
        """The function as a tool."""
        (tool,) = as_tools([self.function])
        return tool

    async def reply(self, arguments: Mapping[str, Any]) -> ToolReply:
        """Call the tool."""
        return await call_tool(self.tool, (), arguments)


async def says_what_it_does(case: ToolCase) -> None:
    expect(case.tool.description, f"{case.tool.name} has no docstring: the Plan agent needs it to use the tool")
    described = describe([case.tool])
    expect(not described.endswith("…"), "its description is too long for the prompt and was cut: shorten it")


async def returns_what_it_promises(case: ToolCase) -> None:
    for arguments in case.calls:
        reply = await case.reply(arguments)
        expect(not reply.error, f"the call with {shown(dict(arguments))} failed: {reply.error}")
        expect(not reply.note, f"the call with {shown(dict(arguments))} had a fault: {reply.note}")


async def returns_the_same_again(case: ToolCase) -> None:
    if case.tool.effects:
        return
    for arguments in case.calls:
        first, again = await case.reply(arguments), await case.reply(arguments)
        problem = f"{shown(dict(arguments))} has another result the second time: declare it with @tool(effects=True)"
        expect(first == again, problem)


async def can_be_called_side_by_side(case: ToolCase) -> None:
    if case.tool.effects:
        return
    calls = list(case.calls) * 4
    separate = [await case.reply(arguments) for arguments in calls]
    together = await asyncio.gather(*(case.reply(arguments) for arguments in calls))
    expect(together == separate, "concurrent calls return other results than single ones: they must not share state")


async def refuses_hostile_texts_by_exceptions(case: ToolCase) -> None:
    """Replace each text argument in turn by hostile texts. Results and exceptions are fine, but calls must not hang."""
    if case.tool.effects:
        return
    hints = signature_of(case.tool.function, case.tool.name)[1]
    for name in (name for name, kind in hints.items() if kind is str and name != "return"):
        for text in _ODD_TEXTS:
            reply = await case.reply({**case.calls[0], name: text})
            expect(reply.error_type != "TimeoutError", f"{name}={shown(text)} does not end in time")
            expect(not reply.note, f"{name}={shown(text)}: {reply.note}")


TOOL_CHECKS: tuple[Callable[[ToolCase], Awaitable[None]], ...] = (
    says_what_it_does,
    returns_what_it_promises,
    returns_the_same_again,
    can_be_called_side_by_side,
    refuses_hostile_texts_by_exceptions,
)
