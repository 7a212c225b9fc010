"""Events of a question while it is answered: live views, progress bars and exporters listen to them.

def show(event: Event) -> None:
    if isinstance(event, StepFinished):
        print(event.at, event.step.query)

PyRAG().ask("Who is older, Jed Hoyer or John William Henry II?", observer=show)

Nothing depends on who listens. A trace keeps its events (`pyrag.trace.event_codec`), and `pyrag.trace.reducer` turns
events into the state of a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyrag.errors import UsageError
from pyrag.trace.model import Answer, Program, Step, TraceError, Usage


@dataclass(frozen=True, slots=True)
class _Base:
    """The question that an event belongs to, its place in a batch from 0, and the seconds since it was asked."""

    question: str = field(default="", kw_only=True, repr=False, compare=False)
    number: int = field(default=0, kw_only=True, repr=False, compare=False)
    at: float = field(default=0.0, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class QuestionStarted(_Base):
    """The first event. `started_at` is wall-clock time."""

    method: str = ""
    engine: str = ""
    retriever: str = ""
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class AgentStarted(_Base):
    """A request to an agent. `call` numbers the requests of a question; `step` is the one that asks, if one does."""

    call: int
    role: str
    step: int | None = None


@dataclass(frozen=True, slots=True)
class AgentFinished(_Base):
    """The end of a request to an agent.

    Attributes:
        cached: The reply came from the cache of replies, a recording or an earlier process.
        error: Why there is no reply; empty where there is one.
    """

    call: int
    role: str
    seconds: float = 0.0
    usage: Usage = Usage()
    cached: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Searched(_Base):
    """The end of a request to the retriever, which found `found` passages. `step` is the one that asked."""

    call: int
    query: str
    topk: int
    found: int = 0
    seconds: float = 0.0
    step: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class FollowUp(_Base):
    """The last message of a conversation was made a question of its own: `asked`, which the trace is about."""

    asked: str


@dataclass(frozen=True, slots=True)
class Decomposed(_Base):
    sub_queries: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drafting(_Base):
    """A program while it is written: `source` as far as it goes, in whole lines.

    A trace keeps one event for all drafts of a program, without the source; `count` is their number, `until` the time
    of the last one.
    """

    source: str = ""
    count: int = 1
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Planned(_Base):
    """A program was written; its `origin` says whether it is the first or a repair."""

    program: Program
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rejected(_Base):
    """A program failed its checks or its run; `error` is what its planner is told."""

    error: str


@dataclass(frozen=True, slots=True)
class ProgramStarted(_Base):
    """A program runs; `round` is its place among the programs."""

    round: int


@dataclass(frozen=True, slots=True)
class ProgramFinished(_Base):
    """A program's run ended. `status` is the sandbox's, or "stopped" where a service or a budget failed it.

    Attributes:
        first: Number of the program's first step.
        order: Ids of its steps in program order, which are numbered anew from `first`; a step that is not among them
            was begun ahead in vain and is dropped. None: the ids stay.
    """

    round: int
    status: str
    first: int = 0
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class StepStarted(_Base):
    step: int
    primitive: str
    query: str
    line: int = 0
    round: int = 0
    depends_on: tuple[int, ...] = ()
    topk: int | None = None


@dataclass(frozen=True, slots=True)
class Recovering(_Base):
    """A step came back unknown and is tried again."""

    step: int
    policy: str
    topk: int
    query: str = ""  # the new one, of a rewrite


@dataclass(frozen=True, slots=True)
class StepFinished(_Base):
    step: Step


@dataclass(frozen=True, slots=True)
class Warned(_Base):
    message: str


@dataclass(frozen=True, slots=True)
class Answered(_Base):
    answer: Answer


@dataclass(frozen=True, slots=True)
class QuestionFinished(_Base):
    """The last event. `error` says why the question failed, if it did."""

    error: TraceError | None = None


Event = (
    QuestionStarted
    | AgentStarted
    | AgentFinished
    | Searched
    | FollowUp
    | Decomposed
    | Drafting
    | Planned
    | Rejected
    | ProgramStarted
    | ProgramFinished
    | StepStarted
    | Recovering
    | StepFinished
    | Warned
    | Answered
    | QuestionFinished
)
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer of those who do not watch."""


def check_observer(observer: Observer) -> None:
    """Raises `UsageError` where it is none; the callers of a library are not type-checked."""
    if not callable(observer):
        raise UsageError(f"an observer is a function that takes an event, not {type(observer).__name__}")


def of_question(observer: Observer, question: str, number: int = 0) -> Observer:
    """Return an observer that passes events on with the question that they belong to.

    Args:
        observer: Who gets them.
        question: The question.
        number: Its place in a batch, from 0.
    """
    if observer is ignore:
        return ignore
    return lambda event: observer(replace(event, question=question, number=number))


class EventRecorder:
    """An observer that keeps events with their times, and passes them on.

    Args:
        clock: Returns the seconds since the question was asked.
        observer: Who gets the events too.
    """

    def __init__(self, clock: Callable[[], float], observer: Observer = ignore) -> None:
        self.events: list[Event] = []
        self._clock, self._observer = clock, observer

    def __call__(self, event: Event) -> None:
        object.__setattr__(event, "at", self._clock())  # made for this call: nobody has seen it without
        if self._observer is not ignore:
            self._observer(event)
        if isinstance(event, Drafting) and self.events and isinstance(last := self.events[-1], Drafting):
            self.events[-1] = replace(last, count=last.count + 1, until=event.at)
        else:
            self.events.append(event)
