"""Token limits of replies, which grow if a model is cut off while it thinks.

How long a model thinks depends on the model, not on the prompt, so the raised limit is remembered for the client and
applies to every agent that uses it. A higher limit costs nothing if a model needs less. Replies cut off after the
thinking are handled by their agents (`pyrag.agents.conversation`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyrag.agents.parsing.thinking import split_thinking
from pyrag.agents.protocol import Written
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.protocol import Reply, Sampling
from pyrag.llm.spending import uncounted
from pyrag.trace.model import UNKNOWN, Answer

T = TypeVar("T")

ROOMS = (8_192, 16_384)
"""Token limits of the second and third try of a reply that is cut off while the model thinks."""

_NOTHING = r"(?!)"
_FORMS = ("<answer", "```", '["', '{"', "final_answer", "</think")
_BEGINNINGS = (
    *("okay", "ok,", "ok so", "alright", "hmm", "let me", "let's", "let us", "we need to", "we have to", "so,", "wait"),
    *("the user", "first, i", "i need to", "i should", "i have to", "好的", "嗯", "首先", "我需要", "用户"),
)  # beginnings of thinking whose opening tag the chat template wrote
_LOOPED = 200  # characters at the end that also occur earlier in a reply that repeats itself
_MAX_LOOPS = 3
_MORE = "zq"  # imagined continuation of a reply that was cut off: it changes any value that was still open

_needed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def roomy(model: object, sampling: Sampling) -> Sampling:
    """Return sampling parameters whose token limit leaves room for this model's thinking, as seen so far.

    Args:
        model: Client for which the limit is remembered.
        sampling: Parameters that an agent requests.
    """
    if not _needed:
        return sampling
    try:
        needed = _needed.get(uncounted(model), 0)
    except TypeError:  # a caller's own client, which cannot be hashed or weakly referenced
        return sampling
    return replace(sampling, max_tokens=needed) if needed > sampling.max_tokens else sampling


async def asked_with_room(
    model: object, sampling: Sampling, ask: Callable[[Sampling], Awaitable[Reply]], replies: list[Reply]
) -> Sampling:
    """Repeat a request until the reply is not cut off during thinking, or the limit cannot grow further.

    Args:
        model: Client for which the limit is remembered.
        sampling: Parameters that the agent requests.
        ask: Makes the request.
        replies: List that receives every reply, since each was paid for; the last reply counts.

    Returns:
        The sampling parameters of the last reply.
    """
    sampling, before = await _first(roomy(model, sampling), sampling, ask, replies), sampling
    for limit in ROOMS if replies[-1].finish_reason == "length" else ():
        room = min(limit, _window(model) or limit)
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
    """Repeat a request with twice the limit if the last reply was cut off inside its answer.

    Args:
        sampling: Sampling parameters of the last reply.
        ask: Makes the request.
        replies: List that receives the further reply.
    """
    if replies[-1].finish_reason == "length" and _is_open(replies[-1].text):
        with contextlib.suppress(ContextLengthError):
            replies.append(await ask(replace(sampling, max_tokens=2 * sampling.max_tokens)))


async def _first(
    roomy: Sampling, sampling: Sampling, ask: Callable[[Sampling], Awaitable[Reply]], replies: list[Reply]
) -> Sampling:
    try:
        replies.append(await ask(roomy))
    except ContextLengthError:
        if roomy is sampling:
            raise
        replies.append(await ask(sampling))
        return sampling
    return roomy


def _window(model: object) -> int | None:
    """Return a local model's window, which lowers limits to the room that the prompt leaves. Servers report theirs."""
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
    """Return True if a reply was cut off before the requested text began, or after long thinking."""
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
    """Return True if the last answer that a text begins has no end."""
    return text.rfind("<answer>") > text.rfind("</answer>")


def closes_answer(text: str) -> bool:
    """Return True if an answer ends and no other answer begins after it."""
    return "</answer>" in text and not _is_open(text)


def read_whole(
    reply: Reply, text: str, read: Callable[[str], T], essence: Callable[[T], object] = lambda value: value
) -> T:
    """Return a value parsed from a reply, if it does not depend on the missing end of a reply that was cut off.

    Args:
        reply: The reply, which reports whether it was cut off.
        text: Text of the reply in the form that `read` expects.
        read: Parser of the text.
        essence: Returns the part of the value that must not depend on the missing end.

    Raises:
        BadOutputError: `read` rejected the text, or the value could change if the reply continued.
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
    """Return the answer in a free text, or unknown if the missing end of the text could change it.

    Args:
        written: The text.
        read: Parses the answer from a text; returns None if there is none.
    """
    answer = read(written.text)
    if answer is None or not written.cut_off:
        return answer
    longer = read(written.text + _MORE)
    same = (
        not _is_open(written.text) and longer is not None and (longer.text, longer.known) == (answer.text, answer.known)
    )
    return answer if same else Answer(UNKNOWN, known=False)
