"""Asking again after a bad reply, in a window with no room to show it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyrag.agents.conversation import Conversation
from pyrag.agents.llm import make_llm_agents
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.context import about_tokens
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


SUB_QUERIES = tuple(f"Who did the thing with number {number}?" for number in range(30))
TRACEBACK = "Traceback (most recent call last)\n" + 200 * "  frame\n" + "NameError: name 'director' is not defined"
FAILED = 'final_answer = answer(f"When was {director} born?")'
MENDED = 'docs = retrieve("Who?")\nfinal_answer = answer("Who?", docs)'


class Windowed:
    """Replies from a list, and refuses a prompt that leaves no room for its reply in the window."""

    name = "windowed"

    def __init__(self, window: int, *replies: str) -> None:
        self.window_tokens, self.replies = window, list(replies)
        self.asked: list[tuple[tuple[Message, ...], int]] = []
        self.refused = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        if sum(about_tokens(one.content) for one in messages) + sampling.max_tokens > self.window_tokens:
            self.refused += 1
            raise ContextLengthError("the prompt is too long")
        self.asked.append((tuple(messages), sampling.max_tokens))
        return Reply(self.replies.pop(0))

    async def aclose(self) -> None:
        pass


async def repaired(window: int) -> Windowed:
    model = Windowed(window, f"```python\n{MENDED}\n```")
    plan = await make_llm_agents(model).planner.repair("What?", SUB_QUERIES, FAILED, TRACEBACK)
    assert plan.source == MENDED
    return model


def shown(model: Windowed) -> str:
    return model.asked[-1][0][-1].content


async def test_a_repair_with_room_shows_everything() -> None:
    model = await repaired(8_192)
    assert (model.refused, model.asked[0][1]) == (0, 1024)
    assert SUB_QUERIES[7] in shown(model)
    assert TRACEBACK in shown(model)


async def test_a_repair_in_a_small_window_keeps_what_matters() -> None:
    model = await repaired(2_048)
    assert model.refused == 1
    assert [one.role for one in model.asked[0][0]] == ["system", "user"]
    assert all(text in shown(model) for text in ("What?", FAILED, "NameError: name 'director' is not defined"))
    assert SUB_QUERIES[7] not in shown(model)


async def test_a_repair_in_a_tiny_window_drops_the_contract() -> None:
    model = await repaired(1_024)
    assert [one.role for one in model.asked[0][0]] == ["user"]
    assert model.asked[0][1] == 256
    assert all(text in shown(model) for text in ("What?", FAILED, "NameError"))


async def test_a_window_without_room_for_a_repair_is_said() -> None:
    model = Windowed(256)
    with pytest.raises(ContextLengthError):
        await make_llm_agents(model).planner.repair("What?", SUB_QUERIES, FAILED, TRACEBACK)
    assert model.refused == 3


async def test_a_syntax_repair_drops_what_does_not_fit() -> None:
    broken = "\n".join(f'docs{number} = retrieve("Who wrote book {number}?")' for number in range(40)) + "\nx = ("
    model = Windowed(2_600, f"```python\n{broken}\n```", f"```python\n{MENDED}\n```")
    plan = await make_llm_agents(model).planner.plan("Who did it?", ["Who?"])
    assert plan.source == MENDED
    first, second = model.asked
    assert len(second[0]) < len(first[0]) + 2  # the reply is not shown: its program is
    assert all(text in shown(model) for text in ("Question: Who did it?", "book 39"))
