"""A conversation: questions that lean on what was asked and answered before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pyrag.llm.protocol import Message
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import Trace

Where = str | Mapping[str, Any] | None  # a filter, as `PyRAG.ask` takes it
MAX_KEPT = 100  # messages; the oldest go first


class Chat:
    """A conversation of one user. Questions are asked one after another.

    chat = PyRAG().chat()
    chat.ask("Who directed The Seventh Seal?")
    chat.ask("Where was he born?").question        # "Where was Ingmar Bergman born?"

    Each follow-up becomes a question of its own by one call of the Standalone Agent, which counts against the
    question's limits: `Trace.question` is that question and `Trace.said` the user's words.

    Args:
        ask: answers a question: `PyRAG.ask`.
        aask: the same, asynchronously.
        where: filter of passages for all of its questions.
        turns: messages to begin with, such as those of an earlier conversation.
    """

    def __init__(
        self,
        ask: Callable[..., Trace],
        aask: Callable[..., Awaitable[Trace]],
        where: Where = None,
        turns: Sequence[Message] = (),
    ) -> None:
        self._ask, self._aask, self._where = ask, aask, where
        self._turns = list(turns)

    @property
    def turns(self) -> tuple[Message, ...]:
        """The messages so far: questions as they were asked, and answers."""
        return tuple(self._turns)

    def ask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Answer the next question; one that fails leaves the conversation as it was.

        Args:
            question: in the user's words.
            observer: called with each event, in the thread that asks.
            keep: keep requests and replies in the trace, so that it can be replayed.

        Raises:
            UsageError: the question is empty, too long or no text.
        """
        trace = self._ask(question, where=self._where, observer=observer, keep=keep, earlier=self.turns)
        return self._added(question, trace)

    async def aask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Like `ask`, in the running event loop.

        Args:
            question: in the user's words.
            observer: called with each event.
            keep: keep requests and replies in the trace, so that it can be replayed.

        Raises:
            UsageError: the question is empty, too long or no text.
        """
        trace = await self._aask(question, where=self._where, observer=observer, keep=keep, earlier=self.turns)
        return self._added(question, trace)

    def clear(self) -> None:
        """Forget all messages."""
        self._turns.clear()

    def _added(self, question: str, trace: Trace) -> Trace:
        if trace.error is None:
            self._turns += [Message("user", question), Message("assistant", trace.answer.text)]
            del self._turns[:-MAX_KEPT]
        return trace
