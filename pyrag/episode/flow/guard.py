"""Guard for calls with effects: judges each call, and refuses it or has it confirmed, before it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyrag.episode.flow.policy import NOT_CONFIRMED, DependentCall
from pyrag.episode.requests import FREE
from pyrag.errors import ReplayError

if TYPE_CHECKING:
    from pyrag.episode.episode import Episode
    from pyrag.trace.model import Passage
    from pyrag_sandbox import Call

T = TypeVar("T")
SEARCH = "retrieve"
_CONFIRM = f"{FREE}confirm"


class CallingProgram(Protocol):
    """Run of a program that makes calls."""

    @property
    def episode(self) -> Episode: ...
    @property
    def retrieved(self) -> Mapping[int, tuple[Any, int, list[Passage]]]: ...

    @property
    def source(self) -> str: ...


async def guarded(
    program_run: CallingProgram,
    call: Call,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    work: Callable[[], Awaitable[T]],
) -> T:
    """Make a call with effects if the flow policy allows it.

    The callback's decision is recorded. A replay asks nobody; calls that are missing from the recording had been
    refused.

    Args:
        program_run: Run of the program that calls.
        call: The program's call.
        args: Positional arguments of the call, as plain data.
        kwargs: Keyword arguments of the call, as plain data.
        work: Function that makes the call.

    Raises:
        FlowError: The call depends on passages, and is not allowed.
    """
    episode = program_run.episode
    asked = DependentCall(call.name, tuple(args), dict(kwargs), call.line, "", _passages_behind(program_run, call))
    effects = [name for name, has_effects in episode.tools.items() if has_effects]
    effects += [SEARCH] if episode.flow.searches else []
    primitives = [name for name in episode.primitives if name not in episode.tools]
    dependent = await episode.flow.dependent(asked, program_run.source, primitives, effects)
    if dependent is None:
        return await work()
    flow, recording = episode.flow, episode.ledger.recording
    if recording is not None and not recording.holds(_CONFIRM):
        try:
            return await work()
        except ReplayError:
            raise flow.refusal(dependent, program_run.source) from None
    if recording is None and flow.confirm is None:
        raise flow.refusal(dependent, program_run.source)
    flow.confirmations += 1
    request = {"call": dependent.call, "number": flow.confirmations}
    ask = partial(flow.confirmed, dependent, program_run.source)
    if not await episode.requests.fresh(_CONFIRM, request, ask, bool):
        raise flow.refusal(dependent, program_run.source, NOT_CONFIRMED)
    return await work()


async def guarded_search(program_run: CallingProgram, call: Call, query: str, work: Callable[[], Awaitable[T]]) -> T:
    """Search if searches have no effects, or if the flow policy allows the search.

    Args:
        program_run: Run of the program that searches.
        call: The program's call.
        query: Search text.
        work: Function that searches.

    Raises:
        FlowError: The search depends on passages, and is not allowed.
    """
    if not program_run.episode.flow.guards_searches:
        return await work()
    await program_run.episode.requests.until_certain()
    return await guarded(program_run, call, (query,), {}, work)


def _passages_behind(program_run: CallingProgram, call: Call) -> tuple[Passage, ...]:
    """Return the passages that a call may depend on; if these are not known, return all passages of the question."""
    known = {
        passage.id: passage
        for key in call.depends_on
        if key in program_run.retrieved
        for passage in program_run.retrieved[key][2]
    }
    return tuple((known or program_run.episode.passages).values())
