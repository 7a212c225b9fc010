"""The runtime's agents, seen from outside: the requests they send to their model, and how they read a reply.

Prompts and parsers belong to `pyrag.agents`, whose agents are called with a `ChatModel` of this module. A row's prompt
is therefore identical to what the agent sends when it answers users, and a completion has the same meaning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling

_SAMPLING = Sampling()


class _Asked(Exception):  # noqa: N818  not an error: it carries the request
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
    """Chat model with a single reply: it returns `text` once, and then raises `BadOutputError`.

    An agent only repeats its request if it cannot parse the first reply, so the error means that the reply is
    malformed.
    """

    name = "policy"

    def __init__(self, text: str) -> None:
        self._texts = [text]

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the reply once, then raise `BadOutputError`.

        Args:
            messages: Ignored.
            sampling: Ignored.
        """
        if not self._texts:
            raise BadOutputError("the completion does not have the agent's form")
        return Reply(self._texts.pop())

    async def aclose(self) -> None:
        return None


def agents_over(model: ChatModel, prompts: str | None = None) -> Agents:
    """Return the language-model agents that use a model.

    Args:
        model: Model that replies to the agents.
        prompts: The runtime's setting: a folder of prompts, or None.
    """
    return make_llm_agents(model, prompts_dir=prompts)


async def prompt_of(ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None) -> tuple[Message, ...]:
    """Return the messages that an agent sends first.

    Args:
        ask: Call of the agent, as in `lambda agents: agents.planner.plan(question, sub_queries)`.
        prompts: The runtime's setting: a folder of prompts, or None.

    Raises:
        ValueError: The agent needs no model for this call.
    """
    return (await request_of(ask, prompts))[0]


async def request_of(
    ask: Callable[[Agents], Awaitable[Any]], prompts: str | None = None
) -> tuple[tuple[Message, ...], Sampling]:
    """Return the first messages of an agent, and its sampling: JSON schema, pattern, limits.

    Args:
        ask: Call of the agent, see `prompt_of`.
        prompts: The runtime's setting: a folder of prompts, or None.

    Raises:
        ValueError: The agent needs no model for this call.
    """
    try:
        await ask(agents_over(_Listener(), prompts))
    except _Asked as asked:
        return asked.messages, asked.sampling
    raise ValueError("the agent sent no request to its model")
