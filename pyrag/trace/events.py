"""Events of a question while it is answered, for live views, progress bars and exporters.

def show(event: Event) -> None:
    if isinstance(event, StepFinished):
        print(event.at, event.step.query)

PyRAG().ask("Who is older, Jed Hoyer or John William Henry II?", observer=show)

Observers cannot influence a question. A trace keeps its events (`pyrag.trace.event_codec`), and
`pyrag.trace.reducer` turns events into the state of a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyrag.errors import UsageError
from pyrag.trace.model import Answer, Program, Step, TraceError, Usage


@dataclass(frozen=True, slots=True)
class _Base:
    """Fields of all events: the question, its place in a batch from 0, and the seconds since it was asked."""

    question: str = field(default="", kw_only=True, repr=False, compare=False)
    number: int = field(default=0, kw_only=True, repr=False, compare=False)
    at: float = field(default=0.0, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class QuestionStarted(_Base):
    """First event of a question. `started_at` is wall-clock time."""

    method: str = ""
    engine: str = ""
    retriever: str = ""
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class AgentStarted(_Base):
    """Start of a request to an agent.

    `call` numbers the requests of a question; `step` is the step that makes the request, if any.
    """

    call: int
    role: str
    step: int | None = None


@dataclass(frozen=True, slots=True)
class AgentFinished(_Base):
    """End of a request to an agent.

    Attributes:
        cached: Whether the reply came from the cache of replies, a recording or an earlier process.
        error: Reason why there is no reply; empty if there is one.
    """

    call: int
    role: str
    seconds: float = 0.0
    usage: Usage = Usage()
    cached: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Searched(_Base):
    """End of a request to the retriever. `found` is the number of passages, `step` the step that made the request."""

    call: int
    query: str
    topk: int
    found: int = 0
    seconds: float = 0.0
    step: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class FollowUp(_Base):
    """Replacement of a follow-up by a question that stands on its own: `asked`, the question of the trace."""

    asked: str


@dataclass(frozen=True, slots=True)
class Decomposed(_Base):
    """Sub-queries of the question."""

    sub_queries: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drafting(_Base):
    """Unfinished program: `source` holds its complete lines so far.

    A trace keeps one event for all drafts of a program, without the source; `count` is their number, `until` the time
    of the last draft.
    """

    source: str = ""
    count: int = 1
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Planned(_Base):
    """New program. Its `origin` is `plan` for the first one, or else the kind of repair."""

    program: Program
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rejected(_Base):
    """Failure of a program in its checks or its run; `error` is the message for its planner."""

    error: str


@dataclass(frozen=True, slots=True)
class ProgramStarted(_Base):
    """Start of a program's run; `round` is its index among the programs."""

    round: int


@dataclass(frozen=True, slots=True)
class ProgramFinished(_Base):
    """End of a program's run. `status` is the sandbox's, or "stopped" if a service or the budget ended it.

    Attributes:
        first: Number of the program's first step.
        order: Ids of the program's steps in program order, which are renumbered from `first`. A missing step was
            speculative and not needed, and is dropped. None keeps the ids.
    """

    round: int
    status: str
    first: int = 0
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class StepStarted(_Base):
    """Start of a step."""

    step: int
    primitive: str
    query: str
    line: int = 0
    round: int = 0
    depends_on: tuple[int, ...] = ()
    topk: int | None = None


@dataclass(frozen=True, slots=True)
class Recovering(_Base):
    """Retry of a step whose answer was unknown."""

    step: int
    policy: str
    topk: int
    query: str = ""  # the rewritten query, if any


@dataclass(frozen=True, slots=True)
class StepFinished(_Base):
    """End of a step."""

    step: Step


@dataclass(frozen=True, slots=True)
class Warned(_Base):
    """Warning to the user."""

    message: str


@dataclass(frozen=True, slots=True)
class Answered(_Base):
    """Final answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class QuestionFinished(_Base):
    """Last event of a question. `error` is the reason why the question failed, if it did."""

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
    """Ignore an event. This is the observer if nobody watches."""


def check_observer(observer: Observer) -> None:
    """Raise `UsageError` if the observer is not callable."""
    if not callable(observer):
        raise UsageError(f"an observer is a function that takes an event, not {type(observer).__name__}")


def of_question(observer: Observer, question: str, number: int = 0) -> Observer:
    """Return an observer that adds the question to events before it passes them on.

    Args:
        observer: Observer that receives the events.
        question: The question.
        number: Place of the question in a batch, from 0.
    """
    if observer is ignore:
        return ignore
    return lambda event: observer(replace(event, question=question, number=number))


class EventRecorder:
    """Observer that stores events with their times, and passes them on.

    Args:
        clock: Function that returns the seconds since the question was asked.
        observer: Observer that also receives the events.
    """

    def __init__(self, clock: Callable[[], float], observer: Observer = ignore) -> None:
        self.events: list[Event] = []
        self._clock, self._observer = clock, observer

    def __call__(self, event: Event) -> None:
        object.__setattr__(
            event, "at", self._clock()
        )  # the event was made for this call, so nobody has seen it without a time
        if self._observer is not ignore:
            self._observer(event)
        if isinstance(event, Drafting) and self.events and isinstance(last := self.events[-1], Drafting):
            self.events[-1] = replace(last, count=last.count + 1, until=event.at)
        else:
            self.events.append(event)
