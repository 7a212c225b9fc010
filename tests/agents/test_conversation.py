"""Asking again after a bad reply, in a window with no room to show it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyrag.agents.conversation import Conversation
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling

_WINDOW = 60  # characters of a prompt and tokens of its reply, taken together


class Rambling:
    """A model that fills what it is given, with a small window."""

    name = "rambling"

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        if sum(len(message.content) for message in messages) + sampling.max_tokens > _WINDOW:
            raise ContextLengthError("too long")
        self.limits.append(sampling.max_tokens)
        return Reply("x" * sampling.max_tokens, prompt_tokens=1, completion_tokens=1, finish_reason="length")

    async def aclose(self) -> None:
        pass


def never(reply: str) -> str:
    raise BadOutputError("no form")


async def test_a_reply_that_leaves_no_room_is_not_shown_again() -> None:
    model = Rambling()
    conversation = Conversation(model, Sampling(max_tokens=20), "be", "short")
    with pytest.raises(BadOutputError, match="no form; it was cut off at the limit of 20 tokens"):
        await conversation.asked(never, lambda reply, problem: "again", retries=2)
    assert model.limits == [20, 20, 20]


@pytest.mark.parametrize(
    ("reply", "request_", "refused"),
    [("The Glass Orchard", "Who wrote Dracula?", True), ("The Glass Orchard", "Who wrote The Glass Orchard?", False),
     ("Dracula", "Who wrote it?", False), ("The Glass Orchard", None, False)],
)  # fmt: skip
async def test_a_copied_example_is_no_reply(reply: str, request_: str | None, refused: bool) -> None:
    talk = Conversation(ScriptedChat([reply, "Dracula"]), Sampling(), "be", "brief", request=request_)
    assert await talk.asked(str, lambda _, problem: problem, 1) == ("Dracula" if refused else reply)
    assert len(talk.raw) == 1 + refused
