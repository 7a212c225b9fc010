"""Writing speed of models, measured from finished replies and reported in errors about slow models."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.errors import RetryableServiceError
from pyrag.llm.context import about_tokens
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.wrappers import Send, WrappedChat

_MIN_SECONDS = 0.001
_SAMPLES = 256  # calls that are kept
_SLOW = 20.0  # tokens per second; below it, shorter replies help
_INSTANT = 1000.0  # tokens per second; above it, the speed explains nothing


@dataclass(frozen=True, slots=True)
class CallSample:
    """Finished call: its duration, and the tokens of prompt and reply.

    Attributes:
        prompt_tokens: Tokens of the prompt, as counted by the server; 0 if it does not report them.
        counted_tokens: Tokens of the prompt, as estimated by `about_tokens`.
    """

    seconds: float
    prompt_tokens: int
    completion_tokens: int
    counted_tokens: int


class PacedChat(WrappedChat):
    """Chat model that times its replies. Errors about calls that took too long state the speed.

    Attributes:
        tokens: Tokens of all finished replies.
        seconds: Total time of the calls that returned them.
        unanswered: Longest time of a call without a reply, in seconds.
        samples: Last finished calls.
    """

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model)
        self.tokens = 0
        self.seconds = 0.0
        self.unanswered = 0.0
        self.samples: deque[CallSample] = deque(maxlen=_SAMPLES)
        self._max_tokens = 0  # maximum reply tokens of the last request

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return a reply and time it."""
        self._max_tokens = sampling.max_tokens
        began, answered = time.perf_counter(), False
        try:
            reply = await send(messages, sampling)
            answered = True
        except RetryableServiceError as error:
            if not (error.timed_out and (speed := self._speed())):
                raise
            message = f"{error}; {speed}"
            raise RetryableServiceError(
                message, service=error.service, retry_after=error.retry_after, timed_out=True
            ) from error.__cause__
        finally:
            if not answered:
                self.unanswered = max(self.unanswered, time.perf_counter() - began)
        seconds = time.perf_counter() - began
        counted = sum(about_tokens(message.content) for message in messages)
        self.samples.append(CallSample(seconds, reply.prompt_tokens, reply.completion_tokens, counted))
        if reply.completion_tokens > 0:
            self.tokens += reply.completion_tokens
            self.seconds += seconds
        return reply

    def describe_pace(self) -> str:
        """Return a clause about the model's speed, or the longest call without a reply; empty if both are unknown."""
        if speed := self._speed():
            return speed
        return f"a call to {self.name} had no reply after {self.unanswered:.3g} s" if self.unanswered >= 1 else ""

    def _speed(self) -> str:
        """Return a clause about the speed, with advice for a slow model; empty if it does not explain a long wait."""
        speed = self.tokens / max(self.seconds, _MIN_SECONDS)
        if not self.tokens or speed > _INSTANT:
            return ""
        clause = f"{self.name} writes {speed:{'.2g' if speed < 100 else '.0f'}} tokens a second"
        if speed >= _SLOW:
            return clause
        return (
            f"{clause}, so that a reply of {self._max_tokens:,} tokens takes {self._max_tokens / speed:,.0f} s: "
            "ask for shorter ones with --request max_tokens=N"
        )
