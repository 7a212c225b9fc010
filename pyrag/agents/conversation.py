"""One agent's exchange with its model: asks, asks again after a bad reply, and adds up what that costs.

Left out: what a reply means. A caller passes `asked()` a parser, or itself parses `ask()` and calls `retry()` with what
was wrong.
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

_SHOWN = 8_000  # characters of a bad reply that its author sees again
_LEFT_OUT = "(a reply too long to show)"
_MIN_ROOM = 256  # tokens of a reply where the window is too small for the prompt and the room that was asked for
COPIED = "it copies the example or the form of the prompt: write a reply of your own, about what you are asked"
CUT_OFF = "it was cut off at the limit of {tokens} tokens: be shorter"
FILTERED = "it was cut off by a content filter"
BROKEN_OFF = "its server broke it off ({reason})"


class Conversation:
    """State of one agent call: its replies, the bad ones included. Where the model can show a reply while it
    writes, `watch` is called for each, and what it returns with each piece. `request` is what the agent is asked and
    shown, without the prompt's own text; with it, a reply that copies the prompt's example is refused. `shorter` is the
    user's message without what can be spared, for windows that are too small, and `question` what no retry there lacks.
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
        """Costs of the replies."""
        return reduce(add, map(usage_of, self._replies)) if self._replies else Usage()

    @property
    def note(self) -> str:
        """Warnings of the replies about their server."""
        return "; ".join(reply.note for reply in self._replies if reply.note)

    def noted(self, said: str) -> str:
        """A note of the agent's own, with that of the server."""
        return "; ".join(filter(None, (said, self.note)))

    @property
    def note_of_answers(self) -> str:
        """The note without what it says of patterns: answers are read as well where a server knows none."""
        return "; ".join(part for part in self.note.split("; ") if PATTERNS not in part)

    @property
    def raw(self) -> tuple[str, ...]:
        return tuple(reply.text for reply in self._replies)

    async def asked(self, parse: Callable[[str], T], again: Callable[[str, str], str], retries: int) -> T:
        """Return the value of the first reply in form.

        Args:
            parse: Reads a reply; raises `BadOutputError` with its fault.
            again: Writes the next message to the model, from a bad reply and its fault.
            retries: Most further replies.

        Raises:
            BadOutputError: No reply was in form; the message is the last one's fault.
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
        """The replies that were not cut off."""
        return tuple(reply.text for reply in self._replies if not reply.cut_off)

    @property
    def hanging(self) -> str:
        """The fault of a last reply whose answer may lack its end; else an empty text."""
        last = self._replies[-1]
        return "its answer is not whole" if last.cut_off and not closes_answer(last.text) else ""

    @property
    def cut_off(self) -> str:
        """A warning where the last reply was cut off; else an empty text."""
        if not self._replies or not self._replies[-1].cut_off:
            return ""
        return f"a reply of {self._model.name} was not taken: {self._cut()} (see the request option max_tokens)"

    def read(self, parse: Callable[[str], T], essence: Callable[[T], object] = lambda one: one) -> T:
        """Return a value read from the last reply.

        Args:
            parse: Reads a reply; raises `BadOutputError` with its fault.
            essence: The part of the value that must not depend on the missing end of a reply that was cut off.

        Raises:
            BadOutputError: The reply has a fault, lacks its end, or copies the prompt's example.
        """
        last = self._replies[-1]
        return self.own(read_whole(last, last.text, parse, essence))

    def own(self, value: T) -> T:
        """A value read from a reply. Raises `BadOutputError` where it copies the prompt's example or form."""
        if self._request is not None and copies_example(value, self._request):
            raise BadOutputError(COPIED)
        return value

    async def ask(self) -> str:
        """Ask, where the window is too small with the shorter message, then without the system message."""
        return await self._first_that_fits(self._opening, *self._spared(self._shorter))

    async def retry(self, user: str) -> str:
        """Ask again with the last reply and `user`; earlier bad replies are left out, since they mislead."""
        last, before = self._replies[-1], self._sampling
        if last.finish_reason == "length":
            more = min(2 * before.max_tokens, max(ROOMS[-1], before.max_tokens))
            self._sampling = replace(before, max_tokens=more)
        shown = last.text[:_SHOWN] if last.text.strip() else "(an empty reply)"
        try:
            return await self._complete((*self._opening, Message("assistant", shown), Message("user", user)))
        except ContextLengthError:  # the question itself fitted: show less, and ask for no more than then
            self._sampling = before
        told = user if self._question in user else f"Question: {self._question}\n\n{user}"
        spared = self._spared(told) if self._question else ()
        return await self._first_that_fits(
            (*self._opening, Message("assistant", _LEFT_OUT), Message("user", user)), *spared
        )

    def _spared(self, user: str) -> tuple[tuple[Message, ...], ...]:
        """The messages that are left of a request in a small window, most first."""
        return ((self._opening[0], Message("user", user)), (Message("user", user),)) if user else ()

    async def _first_that_fits(self, *requests: tuple[Message, ...]) -> str:
        """Make the first request that the window has room for; each further one asks for a reply half as long."""
        for request in requests[:-1]:
            try:
                return await self._complete(request)
            except ContextLengthError:
                half = max(self._sampling.max_tokens // 2, min(_MIN_ROOM, self._sampling.max_tokens))
                self._sampling = replace(self._sampling, max_tokens=half)
        return await self._complete(requests[-1])

    def blame(self, problem: str) -> str:
        """Return the fault of the last reply, and that it was cut off if it was."""
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
            stream = getattr(self._model, "stream", None) if getattr(self._model, "streaming", True) else None
            if self._watch is not None and stream is not None:
                reply: Reply = await stream(messages, sampling, self._watch())
                return reply
            return await self._model.complete(messages, sampling)

        self._sampling = await asked_with_room(self._model, self._sampling, ask, self._replies)
        return self._replies[-1].text
