"""Conversations: questions that refer to earlier questions and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pyrag.llm.protocol import Message
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import Trace

Where = str | Mapping[str, Any] | None  # a filter, as `PyRAG.ask` takes it
MAX_MESSAGES = 100  # messages; the oldest are dropped


class Chat:
    """Conversation of one user. Questions are asked one after another.

        chat = PyRAG().chat()
        chat.ask("Who directed The Seventh Seal?")
        chat.ask("Where was he born?").question        # "Where was Ingmar Bergman born?"

    One call of the Standalone Agent rephrases each follow-up so that it stands on its own. This call counts towards the
    question's limits. `Trace.question` is the new question, `Trace.said` the user's words.

    Args:
        ask: Function that answers a question, like `PyRAG.ask`.
        aask: Function that answers a question in the running event loop, like `PyRAG.aask`.
        where: Filter of passages for all questions.
        turns: Messages to begin with, such as an earlier conversation's.
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
        """Messages so far: the user's questions, and the answers."""
        return tuple(self._turns)

    def ask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Answer the next question. If this fails, the conversation does not change.

        Args:
            question: Question in the user's words.
            observer: Called with each event, in the calling thread.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.

        Raises:
            UsageError: The question is empty, too long or not a text.
        """
        trace = self._ask(question, where=self._where, observer=observer, keep=keep, earlier=self.turns)
        return self._added(question, trace)

    async def aask(self, question: str, *, observer: Observer = ignore, keep: bool = False) -> Trace:
        """Answer the next question in the running event loop.

        Args:
            question: Question in the user's words.
            observer: Called with each event.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.

        Raises:
            UsageError: The question is empty, too long or not a text.
        """
        trace = await self._aask(question, where=self._where, observer=observer, keep=keep, earlier=self.turns)
        return self._added(question, trace)

    def clear(self) -> None:
        """Forget all messages."""
        self._turns.clear()

    def _added(self, question: str, trace: Trace) -> Trace:
        if trace.error is None:
            self._turns += [Message("user", question), Message("assistant", trace.answer.text)]
            del self._turns[:-MAX_MESSAGES]
        return trace
