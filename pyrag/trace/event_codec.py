"""Events as plain objects, in one form for streams, saved traces and replays.

{"event": "step_started", "at": 0.12, "step": 3, …}      seconds since the question was asked, then the fields

A stream contains complete events. In a trace, events omit everything that the trace contains elsewhere, so that it
stays small: a missing field has its default value, and these fields refer to the trace:

    question_started    method, engine, retriever, started_at, question: those fields of the trace
    follow_up           asked: the question of the trace
    decomposed          sub_queries: the trace's, unless present
    planned             program: an index of `programs`
    rejected            error: an index of the program that has it, or the text
    step_started        all fields but step: the step's
    step_finished       step: an index of `steps`
    warned              message: an index of `warnings`, or the text
    answered            answer: the answer of the trace
    question_finished   error: the error of the trace

`stream_form` restores complete events. Steps have their final numbers in a trace, and the events of dropped steps
are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar, get_args

from pyrag.errors import DataError
from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Answered,
    Decomposed,
    Drafting,
    Event,
    FollowUp,
    Planned,
    ProgramFinished,
    ProgramStarted,
    QuestionFinished,
    QuestionStarted,
    Recovering,
    Rejected,
    Searched,
    StepFinished,
    StepStarted,
    Warned,
)
from pyrag.trace.model import Program, RecordedEvent, Trace, Usage

T = TypeVar("T")


def _values_of(names: Iterable[str]) -> Callable[[Any], Sequence[Any]]:
    """Return a function that returns the values of an object's attributes."""
    first, *others = names
    get = attrgetter(first, *others)
    return get if others else lambda value: (get(value),)


_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
# Event types by name: `StepStarted` is `step_started`.
_KINDS: dict[str, type[Event]] = {_CAPITAL.sub("_", kind.__name__).lower(): kind for kind in get_args(Event)}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_HIDDEN = ("question", "number", "at")
# The fields of each kind with their defaults.
_SHOWN = {kind: {field.name: field.default for field in fields(kind) if field.name not in _HIDDEN} for kind in _NAMES}
_SHOWN[QuestionStarted]["question"] = ""
_SPENT = {field.name: field.default for field in fields(Usage)}
# The same fields as parallel tuples of names and defaults, and functions that return their values.
_DEFAULTS = {kind: (tuple(shown), tuple(shown.values())) for kind, shown in _SHOWN.items()}
_VALUES: dict[type[Event], Callable[[Any], Sequence[Any]]] = {kind: _values_of(shown) for kind, shown in _SHOWN.items()}
_VALUES_OF_USAGE = _values_of(_SPENT)
_DIGITS = 5  # decimal places of seconds, 10 µs
_OF_STEP = ("primitive", "query", "line", "round", "depends_on", "topk")
_OF_QUESTION = ("method", "engine", "retriever", "started_at")
_References = Mapping[str, int | None]


def event_object(event: Event) -> RecordedEvent:
    """Convert an event to the form of a stream; its values are plain data or dataclasses."""
    shown = {name: getattr(event, name) for name in _SHOWN[type(event)]}
    return {"event": _NAMES[type(event)], "at": round(event.at, _DIGITS), **shown}


def event_of(value: Mapping[str, Any]) -> Event | None:
    """Return the event for an object in the form of a stream; None for an event that this version does not know.

    Raises:
        DataError: A field is missing or has another type.
    """
    import msgspec

    kind = _KINDS.get(str(value.get("event")))
    if kind is None:
        return None
    try:
        plain = msgspec.to_builtins(value)
        del plain["event"]
        event: Event = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"not a pyrag trace: its event {value.get('event')} is damaged ({error})") from error
    return event


def recorded(events: Sequence[Event], trace: Trace) -> tuple[RecordedEvent, ...]:
    """Convert the events of a question to the form of its trace.

    Args:
        events: All events, in the order in which they happened.
        trace: The trace, without events.
    """
    import msgspec

    planned = 0
    objects: list[RecordedEvent] = []
    for event in with_final_steps(events):
        planned += isinstance(event, Planned)
        objects.append(_referring(event, trace, planned - 1))
    plain: list[RecordedEvent] = msgspec.to_builtins(objects)
    return tuple(plain)


def stream_form(trace: Trace) -> list[RecordedEvent]:
    """Convert the events of a trace to the form of a stream. Raises `DataError` if they refer to missing parts."""
    return [_joined(value, trace) for value in trace.events]


def events_of(trace: Trace) -> list[Event]:
    """Return the events of a trace. A question that was never asked has none.

    Raises:
        DataError: An event is damaged.
    """
    return [event for value in stream_form(trace) if (event := event_of(value)) is not None]


def with_final_steps(events: Sequence[Event]) -> list[Event]:
    """Return events with the numbers that steps have in the trace, without the events of dropped steps."""
    numbered: list[Event] = []
    start = 0
    for event in events:
        match event:
            case ProgramStarted():
                start = len(numbered)
            case ProgramFinished(first=first, order=order) if order is not None:
                numbers = {step: first + place for place, step in enumerate(order)}
                if not _are_final(numbered[start:], numbers):
                    numbered[start:] = _renumbered(numbered[start:], numbers)
                event = replace(event, order=None)
        numbered.append(event)
    return numbered


def _are_final(events: Iterable[Event], numbers: Mapping[int, int]) -> bool:
    begun = (event.step for event in events if isinstance(event, StepStarted))
    return all(numbers.get(step) == step for step in begun)


def _renumbered(events: Iterable[Event], numbers: Mapping[int, int]) -> Iterator[Event]:
    for event in events:
        match event:
            case StepStarted(step, depends_on=needed):
                if step in numbers:
                    yield replace(event, step=numbers[step], depends_on=_final(needed, numbers))
            case Recovering(step):
                if step in numbers:
                    yield replace(event, step=numbers[step])
            case StepFinished(done):
                if done.id in numbers:
                    needed = _final(done.depends_on, numbers)
                    yield replace(event, step=replace(done, id=numbers[done.id], depends_on=needed))
            case AgentStarted() | Searched():
                yield replace(event, step=None if event.step is None else numbers.get(event.step))
            case _:
                yield event


def _final(steps: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sorted(numbers[step] for step in steps if step in numbers))


def _referring(event: Event, trace: Trace, program: int) -> RecordedEvent:
    """Return an event's object, with references to everything that the trace already contains."""
    refer = _REFERENCES.get(type(event))
    references = {} if refer is None else refer(event, trace, program)
    return _compact(event, references)


def _to_program(event: Planned, trace: Trace, program: int) -> _References:
    written = trace.programs[program] if 0 <= program < len(trace.programs) else None
    return {"program": program} if written and written.source == event.program.source else {}


def _to_rejection(event: Rejected, trace: Trace, program: int) -> _References:
    written = trace.programs[program] if 0 <= program < len(trace.programs) else None
    return {"error": program} if written and written.error == event.error else {}


def _to_step(event: StepFinished, trace: Trace, _: int) -> _References:
    return {"step": event.step.id} if event.step.id < len(trace.steps) else {}


def _to_warning(event: Warned, trace: Trace, _: int) -> _References:
    return {"message": trace.warnings.index(event.message)} if event.message in trace.warnings else {}


def _left_out(*names: str) -> Callable[[Any, Trace, int], _References]:
    left_out = dict.fromkeys(names)
    return lambda event, trace, program: left_out


_NONE: _References = {}
_STEP: _References = dict.fromkeys(_OF_STEP)
_SUB_QUERIES: _References = {"sub_queries": None}
# Functions that return the fields of an event to which the trace is referred: with a number, or left out (None).
_REFERENCES: dict[type[Event], Callable[[Any, Trace, int], _References]] = {
    QuestionStarted: _left_out("question", *_OF_QUESTION),
    FollowUp: _left_out("asked"),
    Decomposed: lambda event, trace, program: _SUB_QUERIES if event.sub_queries == trace.sub_queries else _NONE,
    Drafting: _left_out("source"),
    Planned: _to_program,
    Rejected: _to_rejection,
    StepStarted: lambda event, trace, program: _STEP if event.step < len(trace.steps) else _NONE,
    StepFinished: _to_step,
    Warned: _to_warning,
    Answered: _left_out("answer"),
    QuestionFinished: _left_out("error"),
}


def _compact(event: Event, references: _References) -> RecordedEvent:
    """Return an event's object without default values, and with some fields replaced by references."""
    kind = type(event)
    value: RecordedEvent = {"event": _NAMES[kind], "at": round(event.at, _DIGITS)}
    for name, default, field_value in zip(*_DEFAULTS[kind], _VALUES[kind](event), strict=False):
        if name in references:
            if (reference := references[name]) is not None:
                value[name] = reference
        elif field_value != default:
            value[name] = round(field_value, _DIGITS) if type(field_value) is float else field_value
    if kind is AgentFinished:
        usage = zip(_SPENT.items(), _VALUES_OF_USAGE(event.usage), strict=True)  # type: ignore[union-attr]
        value["usage"] = {name: spent for (name, zero), spent in usage if spent != zero}
    return value


def _joined(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    """Convert an event of a trace to the form of a stream."""
    join = _JOINS.get(str(value.get("event")))
    try:
        return value if join is None else join(value, trace)
    except (LookupError, TypeError) as error:
        raise DataError(f"not a pyrag trace: its event {value.get('event')} refers to what it lacks") from error


def _with_question(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    return {**value, "question": trace.said or trace.question, **{name: getattr(trace, name) for name in _OF_QUESTION}}


def _with_program(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    number = value["program"]
    return {**value, "program": _as_planned(_referred(number, trace.programs))} if isinstance(number, int) else value


def _with_rejection(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    number = value["error"]
    return {**value, "error": _referred(number, trace.programs).error} if isinstance(number, int) else value


def _with_start(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    if "query" in value:
        return value
    step = _referred(value["step"], trace.steps)
    return {**value, **{name: getattr(step, name) for name in _OF_STEP}}


def _with_step(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    number = value["step"]
    return {**value, "step": _referred(number, trace.steps)} if isinstance(number, int) else value


def _with_warning(value: RecordedEvent, trace: Trace) -> RecordedEvent:
    number = value["message"]
    return {**value, "message": _referred(number, trace.warnings)} if isinstance(number, int) else value


_JOINS: dict[str, Callable[[RecordedEvent, Trace], RecordedEvent]] = {
    "question_started": _with_question,
    "follow_up": lambda value, trace: {"asked": trace.question, **value},
    "decomposed": lambda value, trace: {"sub_queries": trace.sub_queries, **value},
    "planned": _with_program,
    "rejected": _with_rejection,
    "step_started": _with_start,
    "step_finished": _with_step,
    "warned": _with_warning,
    "answered": lambda value, trace: {"answer": trace.answer, **value},
    "question_finished": lambda value, trace: {"error": trace.error, **value},
}


def _referred(number: int, among: Sequence[T]) -> T:
    """Return the item that a number refers to. Raises `LookupError` for negative numbers and missing items."""
    if isinstance(number, bool) or number < 0:
        raise LookupError(number)
    return among[number]


def _as_planned(program: Program) -> Program:
    """Return a program without the results of its run."""
    return replace(program, error="", output="")
