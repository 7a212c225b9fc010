"""A limit on what many questions may spend together: every call that is paid for passes it, whoever makes it.

It stands below the cache, so that kept replies count nothing. Left out: the budget of one question
(`pyrag.episode.ledger`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.errors import BudgetExceededError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling

DEFAULT_SAMPLING = Sampling()


class Meter:
    """Counts calls and tokens (prompt and completion); None is no limit. What an earlier process spent may be given.

    A call is counted before it is made, its tokens when they are known: calls under way may go beyond the limit of
    tokens, none begins after it.
    """

    def __init__(self, max_calls: int | None = None, max_tokens: int | None = None) -> None:
        self.max_calls, self.max_tokens = max_calls, max_tokens
        self.calls = self.tokens = 0
        self.refused = False  # whether a call was wanted that the limits did not allow

    def begin(self) -> None:
        """Raises `BudgetExceededError` where a limit is reached."""
        for spent, limit, what, flag in (
            (self.calls, self.max_calls, "model calls", "--max-calls"),
            (self.tokens, self.max_tokens, "tokens", "--max-tokens"),
        ):
            if limit is not None and spent >= limit:
                self.refused = True
                raise BudgetExceededError(f"the budget of {limit} {what} is spent: raise {flag} to go on")
        self.calls += 1

    def end(self, messages: Sequence[Message], reply: Reply) -> None:
        """Count the tokens of a reply to `messages`."""
        self.tokens += reply.prompt_tokens + reply.completion_tokens


class MeteredChat:
    """A chat model whose calls a meter counts."""

    def __init__(self, model: ChatModel, meter: Meter) -> None:
        self.model = model
        self.meter = meter

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        self.meter.begin()
        reply = await self.model.complete(messages, sampling)
        self.meter.end(messages, reply)
        return reply

    async def aclose(self) -> None:
        await self.model.aclose()

    def __getattr__(self, name: str) -> object:
        """What else the model can do: `models`, `context_tokens`, but not `stream`, which nobody would count."""
        if name == "stream":
            raise AttributeError(name)
        return getattr(self.model, name)
