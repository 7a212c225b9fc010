"""Events of a question while it is answered: the live view and progress bars listen to them.

Nothing depends on who listens; everything an event says is in the trace afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyrag.errors import UsageError
from pyrag.trace.model import Answer, Program, Step


@dataclass(frozen=True, slots=True)
class _Base:
    """The question that an event belongs to; `number` is its place in a batch, from 0."""

    question: str = field(default="", kw_only=True, repr=False, compare=False)
    number: int = field(default=0, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Decomposed(_Base):
    sub_queries: tuple[str, ...]
    note: str = ""


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
class StepStarted(_Base):
    step: int
    primitive: str
    query: str


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


Event = Decomposed | Planned | Rejected | StepStarted | Recovering | StepFinished | Warned | Answered
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
