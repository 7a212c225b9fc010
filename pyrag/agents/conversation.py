"""Exchange between one agent and its model: requests, retries after a bad reply, and the total cost.

A caller either passes a parser to `asked()`, or parses the reply of `ask()` itself and calls `retry()` with its
fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TypeVar

from pyrag.agents.prompts import copies_example
from pyrag.agents.reply_room import ROOMS, asked_with_room, closes_answer, read_whole
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.schema import PATTERNS
from pyrag.llm.spending import usage_of
from pyrag.trace.model import Usage

T = TypeVar("T")
Watch = Callable[[], Callable[[str], None]]

_SHOWN = 8_000  # characters of a bad reply shown to the model again
_LEFT_OUT = "(a reply too long to show)"
_MIN_ROOM = 256  # minimum tokens of a reply if the window is too small for prompt and reply
COPIED = "it copies the example or the form of the prompt: write a reply of your own, about what you are asked"
CUT_OFF = "it was cut off at the limit of {tokens} tokens: be shorter"
FILTERED = "it was cut off by a content filter"
BROKEN_OFF = "its server broke it off ({reason})"


class Conversation:
    """State of one agent call, with all replies including bad ones.

    Args:
        model: Model to ask.
        sampling: Parameters of the replies.
        system: System message.
        user: User message.
        watch: Called for each reply if the model can stream; its result is called with each piece of the reply.
        request: Variable text of the prompt. If set, a reply that copies the prompt's example is refused.
        shorter: User message without dispensable text, for windows that are too small.
        question: The user's question, which is repeated in retries that lack it.
    """

    def __init__(
        self,
        model: ChatModel,
        sampling: Sampling,
        system: str,
        user: str,
        watch: Watch | None = None,
        request: str | None = None,
        *,
        shorter: str = "",
        question: str = "",
    ) -> None:
        self._model = model
        self._sampling = sampling
        self._watch = watch
        self._request = request
        self._opening = (Message("system", system), Message("user", user))
        self._shorter, self._question = shorter, question
        self._replies: list[Reply] = []

    @property
    def usage(self) -> Usage:
        """Cost of all replies."""
        return reduce(add, map(usage_of, self._replies)) if self._replies else Usage()

    @property
    def note(self) -> str:
        """Warnings about the server, from all replies."""
        return "; ".join(reply.note for reply in self._replies if reply.note)

    def noted(self, note: str) -> str:
        """Return an agent's own note joined with the server's warnings."""
        return "; ".join(filter(None, (note, self.note)))

    @property
    def note_of_answers(self) -> str:
        """Note without warnings about unsupported patterns, since answers can be parsed without them."""
        return "; ".join(part for part in self.note.split("; ") if PATTERNS not in part)

    @property
    def raw(self) -> tuple[str, ...]:
        """Texts of all replies."""
        return tuple(reply.text for reply in self._replies)

    async def asked(self, parse: Callable[[str], T], again: Callable[[str, str], str], retries: int) -> T:
        """Return the value of the first well-formed reply.

        Args:
            parse: Parses a reply; raises `BadOutputError` with its fault.
            again: Returns the next message to the model, from a bad reply and its fault.
            retries: Maximum number of further replies.

        Raises:
            BadOutputError: No reply was well-formed; the message is the last reply's fault.
        """
        reply = await self.ask()
        for retries_left in reversed(range(retries + 1)):
            try:
                return self.read(parse)
            except BadOutputError as error:
                problem = self.blame(str(error))
            if retries_left:
                reply = await self.retry(again(reply, problem))
        raise BadOutputError(problem, self.usage)

    @property
    def whole(self) -> tuple[str, ...]:
        """Texts of the replies that were not cut off."""
        return tuple(reply.text for reply in self._replies if not reply.cut_off)

    @property
    def hanging(self) -> str:
        """Fault of the last reply if its answer may be incomplete; empty if it is complete."""
        last = self._replies[-1]
        return "its answer is not whole" if last.cut_off and not closes_answer(last.text) else ""

    @property
    def cut_off(self) -> str:
        """Warning if the last reply was cut off; empty otherwise."""
        if not self._replies or not self._replies[-1].cut_off:
            return ""
        return f"a reply of {self._model.name} was not taken: {self._cut()} (see the request option max_tokens)"

    def read(self, parse: Callable[[str], T], essence: Callable[[T], object] = lambda value: value) -> T:
        """Return a value parsed from the last reply.

        Args:
            parse: Parses a reply; raises `BadOutputError` with its fault.
            essence: Returns the part of the value that must not depend on the missing end of a reply that was cut
                off.

        Raises:
            BadOutputError: The reply has a fault, is incomplete or copies the prompt's example.
        """
        last = self._replies[-1]
        return self.own(read_whole(last, last.text, parse, essence))

    def own(self, value: T) -> T:
        """Return a parsed value. Raises `BadOutputError` if it only copies the prompt's example or form."""
        if self._request is not None and copies_example(value, self._request):
            raise BadOutputError(COPIED)
        return value

    async def ask(self) -> str:
        """Ask. If the window is too small, ask with the shorter message, then without the system message."""
        return await self._first_that_fits(self._opening, *self._spared(self._shorter))

    async def retry(self, user: str) -> str:
        """Ask again with the last reply and `user`. Earlier bad replies are left out, since they mislead the model."""
        last, before = self._replies[-1], self._sampling
        if last.finish_reason == "length":
            more = min(2 * before.max_tokens, max(ROOMS[-1], before.max_tokens))
            self._sampling = replace(before, max_tokens=more)
        shown = last.text[:_SHOWN] if last.text.strip() else "(an empty reply)"
        try:
            return await self._complete((*self._opening, Message("assistant", shown), Message("user", user)))
        except ContextLengthError:  # the first request fitted: show less, and go back to its reply limit
            self._sampling = before
        repeated = user if self._question in user else f"Question: {self._question}\n\n{user}"
        spared = self._spared(repeated) if self._question else ()
        return await self._first_that_fits(
            (*self._opening, Message("assistant", _LEFT_OUT), Message("user", user)), *spared
        )

    def _spared(self, user: str) -> tuple[tuple[Message, ...], ...]:
        """Return shortened forms of a request for a small window, longest first."""
        return ((self._opening[0], Message("user", user)), (Message("user", user),)) if user else ()

    async def _first_that_fits(self, *requests: tuple[Message, ...]) -> str:
        """Send the first request that fits into the window; each further request asks for a reply half as long."""
        for request in requests[:-1]:
            try:
                return await self._complete(request)
            except ContextLengthError:
                half = max(self._sampling.max_tokens // 2, min(_MIN_ROOM, self._sampling.max_tokens))
                self._sampling = replace(self._sampling, max_tokens=half)
        return await self._complete(requests[-1])

    def blame(self, problem: str) -> str:
        """Return a description of the last reply's fault, including whether it was cut off."""
        return f"{problem}; {self._cut()}" if self._replies[-1].cut_off else problem

    def _cut(self) -> str:
        match self._replies[-1].finish_reason:
            case "content_filter":
                return FILTERED
            case "length":
                return CUT_OFF.format(tokens=self._sampling.max_tokens)
            case reason:
                return BROKEN_OFF.format(reason=reason[:40])

    async def _complete(self, messages: tuple[Message, ...]) -> str:
        async def ask(sampling: Sampling) -> Reply:
            if self._watch is not None and getattr(self._model, "streaming", True):
                stream = getattr(self._model, "stream", None)
                if stream is not None:
                    reply: Reply = await stream(messages, sampling, self._watch())
                    return reply
            return await self._model.complete(messages, sampling)

        self._sampling = await asked_with_room(self._model, self._sampling, ask, self._replies)
        return self._replies[-1].text
