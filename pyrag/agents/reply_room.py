"""Room for replies: a token limit that grows where a model was cut off while it thought, and stays grown.

How long a model thinks is the model's, not the prompt's, so the limit is remembered for the client and holds for every
agent that asks it. A limit is no cost: a model that needs less writes less. Left out: replies that were cut off after
the thinking, which their agents ask for again in words (`pyrag.agents.conversation`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyrag.agents.parsing.json_values import split_thinking
from pyrag.agents.protocol import Written
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.protocol import Reply, Sampling
from pyrag.llm.spending import uncounted
from pyrag.trace.model import UNKNOWN, Answer

T = TypeVar("T")

ROOMS = (8_192, 16_384)
"""Tokens of a reply that is cut off in thought, at the second and the third try."""

_NOTHING = r"(?!)"
_FORMS = ("<answer", "```", '["', '{"', "final_answer", "</think")
_BEGINNINGS = (
    *("okay", "ok,", "ok so", "alright", "hmm", "let me", "let's", "let us", "we need to", "we have to", "so,", "wait"),
    *("the user", "first, i", "i need to", "i should", "i have to", "好的", "嗯", "首先", "我需要", "用户"),
)  # of thinking whose opening mark the chat template wrote
_LOOPED = 200  # characters at the end that stand elsewhere, too, in a reply that goes round in circles
_MAX_LOOPS = 3
_MORE = "zq"  # the beginning of an unwritten rest: it changes whatever was still open

_needed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def roomy(model: object, sampling: Sampling) -> Sampling:
    """Return a sampling with the room that this model's thinking was seen to need.

    Args:
        model: The client whose need is remembered.
        sampling: What an agent asks for.
    """
    try:
        needed = _needed.get(uncounted(model), 0)
    except TypeError:  # neither hashable nor weakly referenced: a caller's own
        return sampling
    return replace(sampling, max_tokens=needed) if needed > sampling.max_tokens else sampling


async def asked_with_room(
    model: object, sampling: Sampling, ask: Callable[[Sampling], Awaitable[Reply]], replies: list[Reply]
) -> Sampling:
    """Ask until a reply is not cut off in thought, or there is no more room.

    Args:
        model: The client whose need is remembered.
        sampling: What the agent asks for.
        ask: Makes the request.
        replies: Gets every reply, since each was paid for; the last one counts.

    Returns:
        The sampling of the last reply.
    """
    sampling, before = await _first(roomy(model, sampling), sampling, ask, replies), sampling
    for most in ROOMS:
        room = min(most, _window(model) or most)
        if room < 2 * sampling.max_tokens or not _is_worth_more(replies[-1]):
            continue
        try:
            replies.append(await ask(replace(sampling, max_tokens=room)))
        except ContextLengthError:
            break
        sampling = replace(sampling, max_tokens=room)
    if sampling.max_tokens > before.max_tokens and not is_cut_in_thought(replies[-1]):
        _remember(model, sampling.max_tokens)
    return sampling


async def with_twice_the_room(
    sampling: Sampling, ask: Callable[[Sampling], Awaitable[Reply]], replies: list[Reply]
) -> None:
    """Ask once more if the last reply was cut off inside its answer.

    Args:
        sampling: The sampling of the last reply.
        ask: Makes the request.
        replies: Gets the further reply.
    """
    if replies[-1].finish_reason == "length" and _is_open(replies[-1].text):
        with contextlib.suppress(ContextLengthError):
            replies.append(await ask(replace(sampling, max_tokens=2 * sampling.max_tokens)))


async def _first(
    roomy: Sampling, given: Sampling, ask: Callable[[Sampling], Awaitable[Reply]], replies: list[Reply]
) -> Sampling:
    try:
        replies.append(await ask(roomy))
    except ContextLengthError:
        if roomy is given:
            raise
        replies.append(await ask(given))
        return given
    return roomy


def _window(model: object) -> int | None:
    """The window of a model of this machine, which clips limits to what its prompt leaves; servers say theirs."""
    window = getattr(model, "window", None)
    return window if isinstance(window, int) else None


def _is_worth_more(reply: Reply) -> bool:
    return reply.finish_reason == "length" and is_cut_in_thought(reply) and not _goes_round(reply.text)


def _goes_round(text: str) -> bool:
    return len(text) > _MAX_LOOPS * _LOOPED and text.count(text[-_LOOPED:]) >= _MAX_LOOPS


def _remember(model: object, tokens: int) -> None:
    with contextlib.suppress(TypeError):
        client = uncounted(model)
        _needed[client] = max(_needed.get(client, 0), tokens)


def is_cut_in_thought(reply: Reply) -> bool:
    """True for a reply that was cut off before it came to what its agent asked for, or because it had thought long."""
    if not reply.cut_off:
        return False
    thinking, rest = split_thinking(reply.text, _NOTHING)
    if not rest:
        return not any(form in reply.text for form in ("</answer>", "```"))
    if len(thinking) > len(rest):
        return not closes_answer(rest)
    begun = rest[:40].lower()
    return begun.startswith(_BEGINNINGS) and not any(form in rest for form in _FORMS)


def _is_open(text: str) -> bool:
    """True where the last answer that begins does not end."""
    return text.rfind("<answer>") > text.rfind("</answer>")


def closes_answer(text: str) -> bool:
    """True where an answer ends, and no other one begins after it."""
    return "</answer>" in text and not _is_open(text)


def read_whole(
    reply: Reply, text: str, read: Callable[[str], T], essence: Callable[[T], object] = lambda one: one
) -> T:
    """A value read from a reply, if it does not hang on what a reply that was cut off lacks.

    Args:
        reply: The reply, which says whether it was cut off.
        text: Its text, as `read` takes it.
        read: The parser.
        essence: What of its value must not hang on the missing rest.

    Raises:
        BadOutputError: `read` refused it, or the value would be another one if the reply went on.
    """
    value = read(text)
    if not reply.cut_off:
        return value
    if _is_open(text):
        raise BadOutputError("it was cut off inside its answer")
    try:
        same = essence(read(text + _MORE)) == essence(value)
    except BadOutputError:
        same = False
    if not same:
        raise BadOutputError("it was cut off before its end")
    return value


def written_answer(written: Written, read: Callable[[str], Answer | None]) -> Answer | None:
    """Return the answer in free text, or unknown if the missing end of the text could change it.

    Args:
        written: The text.
        read: Reads the answer of a text; None if it has none.
    """
    answer = read(written.text)
    if answer is None or not written.cut_off:
        return answer
    longer = read(written.text + _MORE)
    same = (
        not _is_open(written.text) and longer is not None and (longer.text, longer.known) == (answer.text, answer.known)
    )
    return answer if same else Answer(UNKNOWN, known=False)
