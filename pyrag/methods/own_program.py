"""Runs of a caller's own program: with sandbox, primitives, memo, budget and recovery, but without a planner."""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyrag.episode.corpus.primitives import offer_corpus
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import run_program
from pyrag.episode.program_values import is_no_answer, is_passage, plain
from pyrag.errors import ProgramFailedError, UsageError
from pyrag.methods.method import Method
from pyrag.methods.program_faults import fault_of, syntax_fault, undefined_name
from pyrag.methods.program_result import NoAnswerError, Result, answer_of
from pyrag.methods.repair import problems
from pyrag.methods.typed_result import CAUSE, MisfitError, typed_answer
from pyrag.methods.value_sources import item_sources
from pyrag.settings import Settings
from pyrag.trace.events import Planned
from pyrag.trace.model import UNKNOWN, Answer, Program
from pyrag_sandbox import Record, Text

NAME = "program"
"""Name of the method in traces."""

MAX_CALLS = 100
"""Maximum number of model calls of a program if the settings give none."""

MAX_SOURCE_BYTES = 64 * 1024
_MAX_TITLE = 200  # characters


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """Program of a caller.

    Attributes:
        source: Python source, at most `MAX_SOURCE_BYTES`, which sets `final_answer`.
        inputs: Input values of JSON types, by variable name.
    """

    source: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_source(self.source)
        object.__setattr__(self, "inputs", _checked_inputs(self.inputs))

    @property
    def title(self) -> str:
        """First line of the program's docstring or leading comment, which the trace shows instead of a question."""
        try:
            text = ast.get_docstring(ast.parse(self.source)) or ""
        except (SyntaxError, ValueError, RecursionError):
            text = ""
        first = next((line for line in self.source.splitlines() if line.strip()), "")
        text = text or (first.strip().lstrip("#!").strip() if first.lstrip().startswith("#") else "")
        title = (text.strip().splitlines() or [""])[0][:_MAX_TITLE].encode("utf-8", "replace").decode()
        return title if any(map(str.isalnum, title)) else "A program"

    @property
    def method(self) -> Method:
        """The method that runs the program."""
        return Method(name=NAME, answer=partial(_run, self), calls_tools=True, plans=False)


async def _run(own: OwnProgram, episode: Episode, settings: Settings) -> Result:
    """Return the program's value.

    Raises:
        ProgramFailedError: The program is wrong. The message gives the line's number and text, and how to correct it.
    """
    program = Program(own.source, planner="caller", origin="caller")
    episode.inputs = own.inputs
    offer_corpus(episode, settings.max_in_flight)
    _check_names(episode)
    episode.observer(Planned(program))
    if (fault := syntax_fault(own.source)) is None:
        fatal = [problem for problem in problems(episode, program) if problem.fatal]
        fault = undefined_name(own.source, fatal[0], _names(episode)) if fatal else None
    if fault is not None:
        episode.programs.append(program)
        raise fault
    if episode.gate is not None:
        await episode.gate.pass_through(episode, program)
    outcome, program_run = await run_program(episode, program)
    if outcome.status != "ok":
        raise fault_of(outcome, _names(episode))
    answer, value = _answer(outcome.value), plain(outcome.value)
    if episode.contract is not None:
        try:
            answer, value = typed_answer(answer, outcome.value, episode.contract)
        except MisfitError as error:
            raise ProgramFailedError(str(error), cause=CAUSE) from None
    sources = program_run.step_ids(outcome.provenance.get("final_answer", ()))
    items = item_sources(outcome, program_run, own.source)
    typed = episode.contract is not None
    return Result(answer, tuple(sources), value, items, cites_searches=True, typed=typed)


def _answer(value: Any) -> Answer:
    """Return a program's value as an answer: containers as JSON, everything else as for planned programs."""
    if isinstance(value, Record) and is_passage(value):
        return Answer(str(value.fields["text"]) or UNKNOWN)
    if isinstance(value, Record):
        return _answer(value.fields["value"] if "value" in value.fields else plain(value))
    if isinstance(value, list | tuple | dict):
        known = any(map(_is_known, _leaves(value)))
        return Answer(json.dumps(plain(value), ensure_ascii=False) if known else UNKNOWN, known)
    try:
        return answer_of(value)
    except NoAnswerError as error:
        raise ProgramFailedError(str(error), cause="no_answer") from None


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list | tuple) else [value]


def _is_known(value: Any) -> bool:
    if isinstance(value, Text):
        return value.absent is None
    if isinstance(value, Record):
        return value.fields.get("known") is not False
    return value is not None and not (isinstance(value, str) and is_no_answer(value))


def _names(episode: Episode) -> tuple[str, ...]:
    from pyrag_helpers import HELPERS

    return (*episode.primitives, *HELPERS, *episode.inputs)


def _check_names(episode: Episode) -> None:
    from pyrag_helpers import ERRORS, HELPERS

    for name in episode.inputs:
        if name in episode.primitives or name in HELPERS or name in ERRORS:
            raise UsageError(f"the input {name!r} has the name of a function that programs call: rename it")


def _check_source(source: str) -> None:
    if not isinstance(source, str):
        raise UsageError(f"the program must be a text, not {type(source).__name__}")
    if not source.strip():
        raise UsageError('the program is empty: write one, such as final_answer = answer("…", retrieve("…"))')
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise UsageError(f"the program has {size:,} bytes, and at most {MAX_SOURCE_BYTES:,} are possible: shorten it")


def _checked_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs as plain JSON. Raises `UsageError` if one cannot be JSON."""
    if not isinstance(inputs, Mapping):
        raise UsageError(f"inputs must be a dict of values by name, not {type(inputs).__name__}")
    for name in inputs:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UsageError(f"the input {name!r} cannot be a name in a program: use letters, digits and _, as in city")
    try:
        text = json.dumps(dict(inputs), allow_nan=False)
        if json.loads(text) != {name: _listed(value) for name, value in inputs.items()}:
            raise TypeError("keys of dicts must be texts")
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the inputs are not JSON values ({error}): give texts, numbers, lists and dicts") from None
    return dict(json.loads(text))


def _listed(value: Any) -> Any:
    """Return a value with tuples replaced by lists, as in JSON."""
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    return {key: _listed(item) for key, item in value.items()} if isinstance(value, dict) else value
