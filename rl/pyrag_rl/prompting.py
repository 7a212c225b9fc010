"""The runtime's agents, seen from outside: what they ask their model, and what they make of a given reply.

Prompts and parsers are those of `pyrag.agents`, called through the one seam that they have, a `ChatModel`. So a row's
prompt is byte for byte what the agent sends when it answers users, and a completion means what it would mean there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling

_SAMPLING = Sampling()


class _Asked(Exception):  # noqa: N818  no error: it carries what was asked
    def __init__(self, messages: Sequence[Message], sampling: Sampling) -> None:
        super().__init__("asked")
        self.messages, self.sampling = tuple(messages), sampling


class _Listener:
    name = "listener"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        raise _Asked(messages, sampling)

    async def aclose(self) -> None:
        return None


class GivenReply:
    """A chat model that has said what it had to say: `text` once, then `BadOutputError`.

    An agent asks again only where it could not read the first reply, so the error means "out of form".
    """

    name = "policy"

    def __init__(self, text: str) -> None:
        self._texts = [text]

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        if not self._texts:
            raise BadOutputError("the completion is out of the agent's form")
        return Reply(self._texts.pop())

    async def aclose(self) -> None:
        return None


def agents_over(model: ChatModel, prompts: str | None = None) -> Agents:
    """The language-model agents with `model` behind them; `prompts` is the runtime's setting."""
    return make_llm_agents(model, prompts_dir=prompts)


async def prompt_of(ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None) -> tuple[Message, ...]:
    """The messages that an agent sends first: `await prompt_of(lambda agents: agents.planner.plan(question, subs))`.

    Raises `ValueError` where the agent needs no model for what it was asked.
    """
    return (await request_of(ask, prompts))[0]


async def request_of(
    ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None
) -> tuple[tuple[Message, ...], Sampling]:
    """The first messages of an agent, and what it asks of its server: a JSON schema, a pattern, limits.

    Raises `ValueError` where the agent needs no model for what it was asked.
    """
    try:
        await ask(agents_over(_Listener(), prompts))
    except _Asked as asked:
        return asked.messages, asked.sampling
    raise ValueError("the agent asked its model nothing")
