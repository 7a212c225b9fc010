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
        """Return the given reply once, then raise `BadOutputError`. Args: those of `ChatModel.complete`."""
        if not self._texts:
            raise BadOutputError("the completion is out of the agent's form")
        return Reply(self._texts.pop())

    async def aclose(self) -> None:
        return None


def agents_over(model: ChatModel, prompts: str | None = None) -> Agents:
    """Return the language-model agents over a model.

    Args:
        model: replies in place of the agents' model.
        prompts: the runtime's setting: a folder of prompts, or None.
    """
    return make_llm_agents(model, prompts_dir=prompts)


async def prompt_of(ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None) -> tuple[Message, ...]:
    """Return the messages that an agent sends first.

    Args:
        ask: the call, as in `lambda agents: agents.planner.plan(question, sub_queries)`.
        prompts: the runtime's setting: a folder of prompts, or None.

    Raises:
        ValueError: the agent needs no model for this call.
    """
    return (await request_of(ask, prompts))[0]


async def request_of(
    ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None
) -> tuple[tuple[Message, ...], Sampling]:
    """Return the first messages of an agent, and its sampling: JSON schema, pattern, limits.

    Args:
        ask: the call, as for `prompt_of`.
        prompts: the runtime's setting: a folder of prompts, or None.

    Raises:
        ValueError: the agent needs no model for this call.
    """
    try:
        await ask(agents_over(_Listener(), prompts))
    except _Asked as asked:
        return asked.messages, asked.sampling
    raise ValueError("the agent asked its model nothing")
