"""Room for models that think, and replies that were cut off: asked for again, remembered, never taken as known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.reply_room import ROOMS, is_cut_in_thought, read_whole
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.trace.model import Passage

PASSAGES = (Passage("1", "Rao", "Asha Rao was born in Ystad.", 1.0),)
ANSWER = "<answer>Ystad</answer>"
THOUGHT = "Let me see. The user wants a town, and there is a document about it. I should look at it with care."


class Thinker:
    """A model whose replies need `needs` tokens; a smaller limit cuts them off where its server cuts them."""

    name = "thinker"

    def __init__(self, needs: int, style: str, reply: str = ANSWER, most: int = 1 << 20) -> None:
        self.needs, self.style, self.reply, self.most = needs, style, reply, most
        self.limits: list[int] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        if sampling.max_tokens > self.most:
            raise ContextLengthError("too long")
        self.limits.append(sampling.max_tokens)
        if sampling.max_tokens >= self.needs:
            return Reply(self.style.format(THOUGHT) + self.reply, 10, self.needs)
        cut = THOUGHT[: len(THOUGHT) * sampling.max_tokens // self.needs]
        return Reply(self.style.partition("{}")[0] + cut, 10, sampling.max_tokens, "length")

    async def aclose(self) -> None:
        pass


INLINE, UNOPENED, HIDDEN = "<think>{}</think>\n", "{}\n</think>\n", ""
STYLES = pytest.mark.parametrize(
    "style", [INLINE, UNOPENED, "[THINK]{}[/THINK]", "<|channel|>analysis<|message|>{}<|end|>"]
)


async def answered(model: Thinker) -> str:
    reading = await make_llm_agents(model).answerer.answer("Where was Asha Rao born?", PASSAGES)
    return reading.text if reading.known else "-"


@STYLES
async def test_thinking_gets_room_once_and_keeps_it(style: str) -> None:
    model = Thinker(3000, style)
    assert [await answered(model) for _ in range(3)] == ["Ystad"] * 3
    assert model.limits == [1024, ROOMS[0], ROOMS[0], ROOMS[0]]


async def test_thinking_that_the_server_hides_counts() -> None:
    class Hiding(Thinker):
        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
            reply = await super().complete(messages, sampling)
            return replace(reply, text="") if reply.cut_off else reply

    model = Hiding(9000, INLINE)
    assert await answered(model) == "Ystad"
    assert model.limits == [1024, *ROOMS]


async def test_a_model_that_does_not_think_keeps_its_limit() -> None:
    model = Thinker(200, "")
    assert [await answered(model) for _ in range(2)] == ["Ystad"] * 2
    assert model.limits == [1024] * 2


async def test_room_is_bounded() -> None:
    model = Thinker(1 << 20, INLINE)
    assert await answered(model) == "-"
    assert max(model.limits) == ROOMS[-1]


async def test_a_window_without_that_room_is_not_asked_for_it() -> None:
    model = Thinker(3000, INLINE, most=2048)
    assert await answered(model) == "-"
    assert max(model.limits) <= 2048


async def test_a_reply_that_goes_round_in_circles_gets_no_room() -> None:
    loop = Reply("<think>" + "Wait, let me look at that again with more care than before. " * 40, 1, 1024, "length")

    class Looping(Thinker):
        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
            self.limits.append(sampling.max_tokens)
            return loop

    model = Looping(0, "")
    assert await answered(model) == "-"
    assert max(model.limits) <= 2048


@STYLES
async def test_every_role_gets_the_same_room(style: str) -> None:
    model = Thinker(3000, style, '["Who is Asha Rao?"]')
    assert (await make_llm_agents(model).decomposer.decompose("Where?")).sub_queries == ("Who is Asha Rao?",)
    model.reply = "So the final answer is: Ystad"
    writer = make_llm_agents(model).writer
    assert writer
    written = await writer.write("self_ask", {"question": "Where?", "transcript": "(none yet)"}, stop=("x:",))
    assert written.text.endswith("Ystad")
    assert model.limits == [1024, ROOMS[0], ROOMS[0]]


async def test_the_writer_alone_gets_a_second_chance() -> None:
    model = Thinker(3000, INLINE, "She was born in Ystad.")
    writer = make_llm_agents(model).writer
    assert writer
    written = await writer.write("cot", {"question": "Where?"})
    assert (written.text.endswith("Ystad."), written.usage.model_calls) == (True, 2)
    assert model.limits == [1024, ROOMS[0]]


class Cut(Thinker):
    """Writes `whole` up to the limit, one character a token, without any thinking."""

    def __init__(self, whole: str, reason: str = "length", most: int = 1 << 20) -> None:
        super().__init__(0, "")
        self.whole, self.reason, self.room = whole, reason, most

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:  # noqa: B008
        self.limits.append(sampling.max_tokens)
        size = min(sampling.max_tokens, self.room)
        return Reply(self.whole[:size], 1, 1, "stop" if size >= len(self.whole) else self.reason)


async def test_an_answer_cut_short_is_asked_for_with_more_room() -> None:
    model = Cut("Doc [1] says where. " * 50 + "<answer>Ystad, which is in Skane</answer>")
    assert await answered(model) == "Ystad, which is in Skane"
    assert model.limits == [1024, 2048]


async def test_long_thinking_before_a_cut_answer_counts_too() -> None:
    model = Cut("<think>" + "x" * 1000 + "</think><answer>Ystad" + "</answer>")
    assert [await answered(model) for _ in range(2)] == ["Ystad"] * 2
    assert model.limits == [1024, ROOMS[0], ROOMS[0]]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize(
    "whole",
    [
        "<think>Doc [1].</think><answer>Ysta",
        "<answer>Ysta",
        "The answer is Ysta",
        "Ysta",
        "**Answer:** Ysta",
        '{"answer": "Ysta',
        "\\boxed{Ysta",
        "<answer>no town, Ysta</answer> or rather <answer>Ysta",
    ],
)
async def test_an_answer_that_stays_cut_short_is_unknown(whole: str, reason: str) -> None:
    model = Cut(f"{whole}d and more", reason, most=len(whole))
    reading = await make_llm_agents(model).answerer.answer("Where was Asha Rao born?", PASSAGES)
    assert not reading.known
    assert "cut off" in reading.note
    assert reading.usage.model_calls <= 4


@pytest.mark.parametrize("text", [f"{ANSWER} Doc [1] says so, and what is mo", f"<think>a</think>{ANSWER}\n\nExplan"])
async def test_an_answer_that_was_closed_before_the_cut_is_taken(text: str) -> None:
    model = Cut(f"{text}re to say", most=len(text))
    assert await answered(model) == "Ystad"
    assert model.limits == [1024]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", True),
        ("<think>a", True),
        ("<think>a</think>b", False),
        ("Okay, so I need to find the town", True),
        ("We need to answer. <answer>Ysta", False),
        ("The town is Ysta", False),
        ("<think>the form is <answer>Ystad</answer>", False),
    ],
)
def test_what_counts_as_cut_off_in_thought(text: str, cut: bool) -> None:
    assert is_cut_in_thought(Reply(text, finish_reason="length")) is cut
    assert not is_cut_in_thought(Reply(text))


def test_a_value_that_hangs_on_the_missing_rest_is_refused() -> None:
    cut = Reply("a b", finish_reason="length")
    assert read_whole(cut, cut.text, lambda text: text.split()[0]) == "a"
    with pytest.raises(BadOutputError, match="cut off"):
        read_whole(cut, cut.text, lambda text: text.split()[-1])


def test_a_model_without_weak_references_is_asked() -> None:
    from pyrag.agents.reply_room import roomy

    assert roomy(["unhashable"], Sampling()) == Sampling()
