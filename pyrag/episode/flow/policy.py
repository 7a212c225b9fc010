"""Flow policy of a question: a call with effects that depends on passages is refused unless its owner allows it.

A call is independent of passages if nothing was retrieved before it in this question, or if the static analysis of its
program shows that neither its arguments nor the control flow to it depend on a passage. The text of the program itself
depends on passages if its author may have seen some: after a repair, or in a conversation.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from pyrag.episode.flow.analysis import dependence
from pyrag.errors import FlowError
from pyrag.trace.model import Passage, shorten
from pyrag_sandbox import Call

Policy = Literal["auto", "strict", "confirm", "allow"]
NOT_CONFIRMED = "it was not confirmed"
"""Reason of a refusal by the callback."""

_MAX_NAMED = 3  # passages that a message names
_REPAIRED = "its program was written after passages had been retrieved, so its author may have read them"
_OVERVIEW = "its program was written by a planner that was told titles and metadata of the documents"
_CONVERSATION = "its program answers a question that was derived from earlier answers"
READER = "it was asked for by an assistant that has read passages or answers before"
"""Reason why a model's question or program depends on passages."""


@dataclass(frozen=True, slots=True)
class DependentCall:
    """Call with effects that depends on passages. A `confirm` callback allows it by returning True.

    Attributes:
        tool: Name of the tool, or `retrieve` if searches have effects.
        args: Positional arguments, as plain data.
        kwargs: Keyword arguments, as plain data.
        line: Line of the program that makes the call; 0 for a call of a method.
        reason: Clause that describes the dependence on passages.
        passages: Passages that the call may depend on.
    """

    tool: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    line: int
    reason: str
    passages: tuple[Passage, ...] = ()

    @property
    def call(self) -> str:
        """The call as it would be written in a program."""
        arguments = (*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items()))
        return f"{self.tool}({', '.join(arguments)})"

    def __str__(self) -> str:
        place = f" in line {self.line}" if self.line else ""
        named = ", ".join(repr(passage.id) for passage in self.passages[:_MAX_NAMED])
        more = f" and {len(self.passages) - _MAX_NAMED} more" if len(self.passages) > _MAX_NAMED else ""
        return f"{shorten(self.call, 300)}{place}: {self.reason}" + (f" (passages: {named}{more})" if named else "")


Serve = Callable[[Call], Awaitable[Any]]
Confirm = Callable[[DependentCall], bool | Awaitable[bool]]


@dataclass(slots=True)
class Flow:
    """Policy of a question, and the values that its programs have received so far.

    Attributes:
        policy: Policy of the settings; `auto` means `confirm` if there is a callback, else `strict`.
        confirm: Callback that may allow a call.
        searches: Whether searches have effects.
        author: Clause that explains why the question or program itself depends on passages; empty if it does not.
        delivered: Names of primitives and tools that have returned passages, or values that depend on them.
        confirmations: Number of calls that the callback had to decide.
    """

    policy: Policy = "auto"
    confirm: Confirm | None = None
    searches: bool = False
    author: str = ""
    delivered: set[str] = field(default_factory=set)
    confirmations: int = 0
    _unread: set[str] = field(default_factory=set)  # programs whose author cannot have read any passage

    def ahead(self) -> Flow:
        """Return the policy for a speculative program, whose author sees nothing of its run."""
        return replace(self, delivered=set(self.delivered), _unread=set(self._unread))

    @property
    def guards_searches(self) -> bool:
        """True if a search that depends on passages is refused or confirmed."""
        return self.searches and self.policy != "allow"

    def derive(self, roles: Iterable[str]) -> None:
        """Note that the question was derived from messages with these roles, such as `assistant`."""
        if not {"user", "system"}.issuperset(roles):
            self.author = self.author or _CONVERSATION

    def describe_documents(self) -> None:
        """Note that the planner sees titles and metadata of the documents."""
        self.author = self.author or _OVERVIEW

    def begin_program(self, source: str) -> None:
        """Note that a program is about to run. Its author has seen no passages if nothing has been delivered."""
        if not self.delivered:
            self._unread.add(source)

    def delivering(self, primitives: Mapping[str, Serve], tools: Collection[str]) -> dict[str, Serve]:
        """Return the primitives without the tools; results of the primitives then count as depending on passages.

        Args:
            primitives: Functions that serve the calls of a program, by name.
            tools: Names of the tools, of which only some return passages.
        """
        return {name: partial(self._deliver, name, work) for name, work in primitives.items() if name not in tools}

    async def _deliver(self, name: str, work: Serve, call: Call) -> Any:
        try:
            return await work(call)
        finally:  # an error may depend on passages as well
            self.delivered.add(name)

    async def dependent(
        self, call: DependentCall, source: str, primitives: Sequence[str], effects: Sequence[str]
    ) -> DependentCall | None:
        """Return a call with the reason why it depends on passages; None if it does not, or if all calls are allowed.

        Args:
            call: The call, without a reason.
            source: Source code of its program; empty for a call of a method.
            primitives: Names of primitives whose results depend on passages.
            effects: Names of primitives with effects.
        """
        if self.policy == "allow":
            return None
        if self.author:
            return replace(call, reason=self.author)
        if not self.delivered:
            return None
        if not source:
            return replace(call, reason="it follows a search whose passages its author may have read")
        if source not in self._unread:
            return replace(call, reason=_REPAIRED)
        sources = frozenset(primitives) | self.delivered
        reason = await asyncio.to_thread(dependence, source, sources, frozenset(effects), call.tool, call.line)
        if reason is None:
            return None
        if reason.arguments:
            verb = "depends" if len(reason.arguments) == 1 else "depend"
            return replace(call, reason=f"its {' and '.join(reason.arguments)} {verb} on retrieved text")
        return replace(call, reason=f"whether it is reached depends on retrieved text, since {reason.cause}")

    async def clear_search(self, query: str, passages: tuple[Passage, ...]) -> None:
        """Return if a search made by a method, not a program, is independent of passages or allowed.

        Args:
            query: The query.
            passages: Passages of the question so far.

        Raises:
            FlowError: The search is not allowed.
        """
        call = await self.dependent(DependentCall("retrieve", (query,), {}, 0, "", passages), "", (), ())
        if call is not None and not await self.confirmed(call):
            raise self.refusal(call, why=NOT_CONFIRMED)

    async def confirmed(self, call: DependentCall, source: str = "") -> bool:
        """Return the callback's decision on a call that depends on passages.

        Args:
            call: The call.
            source: Source code of its program.

        Raises:
            FlowError: There is no callback, or it failed.
        """
        if self.confirm is None:
            raise self.refusal(call, source)
        try:
            return await _asked(self.confirm, call)
        except Exception as error:
            problem = f"the callback confirm failed with {type(error).__name__}: {error}"
            raise self.refusal(call, source, problem) from error

    def refusal(self, call: DependentCall, source: str = "", why: str = "") -> FlowError:
        """Return the error for a refused call.

        Args:
            call: The call.
            source: Source code of its program.
            why: Clause that ends the message; by default, advice on an alternative.
        """
        if not why:
            nobody = "nobody can confirm it here: " if self.policy == "confirm" else ""
            why = f"{nobody}make the call before anything is retrieved, pass confirm=…, or set flow to allow"
        lines = source.splitlines()
        text = lines[call.line - 1].strip() if 0 < call.line <= len(lines) else ""
        return FlowError(f"the call was refused: {call}; {why}", line=call.line or None, source_line=text)


async def _asked(confirm: Confirm, call: DependentCall) -> bool:
    """Return the callback's decision. A synchronous callback runs in a thread, since it may wait for a person."""
    from pyrag.tools.calls import in_own_thread

    answer = confirm(call) if inspect.iscoroutinefunction(confirm) else await in_own_thread(partial(confirm, call))
    return (await answer if inspect.isawaitable(answer) else answer) is True
