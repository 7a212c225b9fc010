"""Checks of a model client: the promises of `pyrag.llm.protocol.ChatModel`, which hold for any reply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pyrag._io.redaction import without_secrets
from pyrag.llm.protocol import ChatModel, Message, ModelInfo, Reply, Sampling
from pyrag.testing.checks import expect, shown

_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
_ODD_TEXTS = ("\x00\u202e", "<|im_end|>", "{{question}} {0} %s $x", "星河 👍", '"\\\n')


@dataclass(frozen=True, slots=True)
class ModelCase:
    """Model client, with messages to send to it.

    Attributes:
        model: The client. The checks leave it open.
        messages: Conversation that the client can reply to.
        sampling: Sampling parameters of the replies.
    """

    model: ChatModel
    messages: tuple[Message, ...] = (
        Message("system", "You are the Answer Agent. Reply in one word."),
        Message("user", "What is the capital of France?"),
    )
    sampling: Sampling = Sampling(max_tokens=64)

    async def reply(self, **sampling: Any) -> Reply:
        """Return the model's reply, with some parameters changed."""
        return await self.model.complete(self.messages, replace(self.sampling, **sampling))


async def model_has_a_name(case: ModelCase) -> None:
    name = case.model.name
    expect(
        isinstance(name, str) and name.strip(), f"its name is {shown(name)}: traces need a text that says what it is"
    )
    expect(without_secrets(name) == name, "its name holds a user, a password or a query: leave them out")


async def returns_a_reply(case: ModelCase) -> None:
    reply = await case.reply()
    expect(isinstance(reply, Reply), f"complete() returned {shown(reply)}: return a pyrag.llm.protocol.Reply")
    expect(isinstance(reply.text, str), f"its text is {shown(reply.text)}: return a str")
    counts = (reply.prompt_tokens, reply.completion_tokens)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    expect(whole, f"its token counts are {counts}: return whole numbers, 0 where the server does not say")


async def takes_every_role(case: ModelCase) -> None:
    turns = (Message("user", "One?"), Message("assistant", "1"), Message("user", "Two?"), Message("assistant", "The"))
    for messages in ((Message("user", "One?"),), (*case.messages[:1], *turns[:3]), (*case.messages[:1], *turns)):
        reply = await case.model.complete(messages, case.sampling)
        roles = " → ".join(message.role for message in messages)
        expect(isinstance(reply, Reply), f"the conversation {roles} has no reply")


async def takes_every_parameter(case: ModelCase) -> None:
    for more in ({"temperature": 0.7}, {"seed": 3}, {"stop": ("\n\n",)}, {"schema": _SCHEMA}, {"pattern": "[a-z]+"}):
        reply = await case.reply(**more)
        expect(isinstance(reply, Reply), f"with {more} there is no reply: leave out what the server does not know")


async def model_takes_any_text(case: ModelCase) -> None:
    for text in _ODD_TEXTS:
        reply = await case.model.complete((*case.messages[:1], Message("user", text)), case.sampling)
        expect(isinstance(reply, Reply), f"the text {shown(text)} has no reply")


async def replies_side_by_side(case: ModelCase) -> None:
    replies = await asyncio.gather(*(case.reply() for _ in range(4)))
    expect(all(isinstance(reply, Reply) for reply in replies), "of four calls at the same time, not all have a reply")


async def replies_in_other_event_loops(case: ModelCase) -> None:
    def elsewhere() -> Reply:
        return asyncio.run(case.reply())

    try:
        reply = await asyncio.to_thread(elsewhere)
    except Exception as error:
        problem = f"in a second event loop it raised {type(error).__name__} ({error}): keep connections for each loop"
        raise AssertionError(problem) from error
    expect(isinstance(reply, Reply), "in a second event loop there is no reply")


async def replies_after_cancellation(case: ModelCase) -> None:
    task = asyncio.ensure_future(case.reply())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    expect(isinstance(await case.reply(), Reply), "after a call was cancelled there is no reply")


async def streams_what_it_replies(case: ModelCase) -> None:
    stream = getattr(case.model, "stream", None)
    if stream is None:
        return
    pieces: list[str] = []
    reply = await stream(case.messages, case.sampling, pieces.append)
    same = not pieces or "".join(pieces) == reply.text
    expect(same, f"the pieces {shown(''.join(pieces))} do not make up the reply {shown(reply.text)}")


async def lists_its_models(case: ModelCase) -> None:
    offered = getattr(case.model, "offered", None)
    if offered is not None:
        models = await offered()
        listed = isinstance(models, list) and all(isinstance(model, ModelInfo) for model in models)
        expect(listed, f"offered() returned {shown(models)}: return a list of ModelInfo")


MODEL_CHECKS: tuple[Callable[[ModelCase], Awaitable[None]], ...] = (
    model_has_a_name,
    returns_a_reply,
    takes_every_role,
    takes_every_parameter,
    model_takes_any_text,
    replies_side_by_side,
    replies_in_other_event_loops,
    replies_after_cancellation,
    streams_what_it_replies,
    lists_its_models,
)
