"""Writing speed of models, measured on their replies, so that a message about a slow one can say it.

`PacedChat` wraps a chat model and measures each call: tokens of a reply by the seconds it took; of a stream that was
cut off, the characters that came. Left out: the limits themselves, which are the clients' and the question's.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyrag.errors import RetryableServiceError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling, StreamingChatModel
from pyrag.llm.wrappers import WrappedChat

DEFAULT_SAMPLING = Sampling()
_MIN_SECONDS = 0.001
_SLOW = 20.0  # tokens a second; below it, shorter replies help
_INSTANT = 1000.0  # tokens a second; above it, the speed explains nothing
_CHARACTERS_A_TOKEN = 4
_LONG_PROMPT = 5.0  # seconds before the first piece that are worth a word
_MIN_PIECES = 8  # fewer measure nothing


@dataclass(slots=True)
class Pace:
    """Replies of one model so far.

    Attributes:
        first_piece: the longest that a call waited for the first piece of a reply, in seconds.
        unanswered: the longest that a call waited in vain, in seconds.
        max_tokens: what the last request allowed.
    """

    tokens: int = 0
    token_seconds: float = 0.0
    characters: int = 0
    character_seconds: float = 0.0
    first_piece: float = 0.0
    unanswered: float = 0.0
    max_tokens: int = 0

    def add_reply(self, tokens: int, seconds: float) -> None:
        """Count a finished reply.

        Args:
            tokens: Of the reply; 0 is ignored.
            seconds: Time that writing it took.
        """
        if tokens > 0:
            self.tokens += tokens
            self.token_seconds += seconds

    def add_pieces(self, characters: int, seconds: float) -> None:
        """Count an unfinished reply.

        Args:
            characters: Those that came after the first piece.
            seconds: Time from the first piece to the last.
        """
        self.characters += characters
        self.character_seconds += seconds

    @property
    def tokens_a_second(self) -> float | None:
        """Measured speed, or an estimate from characters; None before any text came."""
        if self.tokens:
            return self.tokens / max(self.token_seconds, _MIN_SECONDS)
        if self.characters:
            return self.characters / _CHARACTERS_A_TOKEN / max(self.character_seconds, _MIN_SECONDS)
        return None

    def said(self, name: str) -> str:
        """Return the model's speed as a clause; empty if nothing is known."""
        return self.measured(name) or self._waited(name)

    def measured(self, name: str) -> str:
        """The measured speed as a clause, with what helps a slow model; empty where none explains a long wait."""
        speed = self.tokens_a_second
        if speed is None or speed > _INSTANT:
            return ""
        shown, unit = (speed, "tokens") if self.tokens else (speed * _CHARACTERS_A_TOKEN, "characters")
        said = f"{name} writes {shown:{'.2g' if shown < 100 else '.0f'}} {unit} a second"
        if speed >= _SLOW:
            return said
        begins = f" after {self.first_piece:.0f} s for the prompt" if self.first_piece >= _LONG_PROMPT else ""
        seconds = f"{self.max_tokens / speed:,.0f}"
        return (
            f"{said}{begins}, so that a reply of {self.max_tokens:,} tokens takes {seconds} s: "
            "ask for shorter ones with --request max_tokens=N"
        )

    def _waited(self, name: str) -> str:
        if self.first_piece >= _LONG_PROMPT:
            return f"{name} took {self.first_piece:.0f} s for the prompt: lower --topk, or use a smaller model"
        return f"a call to {name} had no reply after {self.unanswered:.3g} s" if self.unanswered >= 1 else ""


class PacedChat(WrappedChat):
    """A chat model whose calls are measured. An error about a call that took too long says the speed."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model)
        self.pace = Pace()

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return a reply and measure it. Args: those of `ChatModel.complete`."""
        if getattr(self.model, "counts_pieces", False):
            return await self._stream(messages, sampling, _ignore)
        return await self._measured(_MeasuredCall(self.pace, sampling), self.model.complete(messages, sampling))

    def said(self) -> str:
        """The measured speed as a clause; empty where nothing is known."""
        return self.pace.said(self.name)

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return self._stream if name == "stream" else found

    async def _stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        call = _MeasuredCall(self.pace, sampling)

        def show(text: str) -> None:
            call.add(text)
            on_text(text)

        return await self._measured(call, cast(StreamingChatModel, self.model).stream(messages, sampling, show))

    async def _measured(self, call: _MeasuredCall, asked: Awaitable[Reply]) -> Reply:
        try:
            reply = await asked
            call.answered(reply)
        except RetryableServiceError as error:
            raise call.explained(error, self.name) from error.__cause__
        finally:
            call.end()
        return reply


def _ignore(text: str) -> None:
    pass


class _MeasuredCall:
    """One call in progress."""

    def __init__(self, pace: Pace, sampling: Sampling) -> None:
        self._pace = pace
        self._started = time.perf_counter()
        self._ended = False
        self._pieces = 0
        self._characters = 0  # after the first piece
        self._first = self._last = 0.0
        pace.max_tokens = sampling.max_tokens

    def add(self, text: str) -> None:
        self._last = time.perf_counter()
        if self._pieces:
            self._characters += len(text)
        else:
            self._first = self._last
            self._pace.first_piece = max(self._pace.first_piece, self._first - self._started)
        self._pieces += 1

    def answered(self, reply: Reply) -> None:
        self._ended = True
        since = self._first if self._pieces >= _MIN_PIECES else self._started
        self._pace.add_reply(reply.completion_tokens, time.perf_counter() - since)

    def end(self) -> None:
        """Counts a call that was cancelled or failed by what came of it."""
        if self._ended:
            return
        self._ended = True
        if self._pieces >= _MIN_PIECES:
            self._pace.add_pieces(self._characters, self._last - self._first)
        elif not self._pieces:
            self._pace.unanswered = max(self._pace.unanswered, time.perf_counter() - self._started)

    def explained(self, error: RetryableServiceError, name: str) -> RetryableServiceError:
        """The error, with the speed where the time was too short."""
        self.end()
        said = self._pace.measured(name) if error.timed_out else ""
        if not said:
            return error
        return RetryableServiceError(
            f"{error}; {said}", service=error.service, retry_after=error.retry_after, timed_out=True
        )
