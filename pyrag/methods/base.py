"""What methods share: running a program to a result, and what a result is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyrag.checks import RESULT
from pyrag.episode import Episode, Round, plain
from pyrag.trace import UNKNOWN, Answer, Program
from pyrag_sandbox import Outcome, Text

UNKNOWN_ERROR = "UnknownAnswerError"


@dataclass(frozen=True, slots=True)
class Result:
    """The final answer and the steps it depends on."""

    answer: Answer
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a program gave no result: `message` is what its planner is told, `unknown` whether evidence was lacking,
    `cause` as in `pyrag.errors.ProgramFailedError`."""

    message: str
    summary: str
    unknown: bool = False
    cause: str = ""


async def execute(episode: Episode, program: Program) -> Result | Failure:
    """Runs a program. Faults of services and spent budgets are raised; faults of the program are returned."""
    outcome, round_ = await episode.run(program)
    if outcome.status == "ok" and outcome.has_value and outcome.value is not None:
        return result_of(outcome, round_)
    return failure_of(outcome)


def result_of(outcome: Outcome, round_: Round) -> Result:
    """The value of `final_answer` as an Answer. "unknown" is a value of its own, never part of a text."""
    steps = tuple(round_.step_ids(outcome.provenance.get(RESULT, ())))
    value = outcome.value
    if isinstance(value, Text):
        known = bool(value.fields.get("known", True))
        return Result(Answer(value.text, known, (), value.fields.get("confidence")), steps)
    text = as_text(value)
    known = bool(text.strip()) and text.strip().rstrip(".").casefold() != UNKNOWN
    return Result(Answer(text if known else UNKNOWN, known), steps)


def as_text(value: Any) -> str:
    """How a program's value reads as an answer: yes/no, lists with commas, the rest as Python prints it."""
    value = plain(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return ", ".join(as_text(one) for one in value)
    return str(value)


def failure_of(outcome: Outcome) -> Failure:
    error = outcome.error
    match outcome.status:
        case "ok":
            message = f"the program ended without setting {RESULT}: assign the answer to it"
            return Failure(message, message, cause="no_answer")
        case "blocked":
            said = error.message if error else "not allowed"
            where = f" (line {error.line})" if error and error.line else ""
            return Failure(f"refused by the sandbox{where}: {said}", f"refused by the sandbox: {said}", cause="refused")
        case "killed":
            said = f"the program was stopped by a limit ({outcome.reason})"
            return Failure(f"{said}: write a shorter one without long loops", said, cause=outcome.reason)
    assert error is not None
    summary = f"{error.type}: {error.message}" + (f" (line {error.line})" if error.line else "")
    return Failure(error.traceback or summary, summary, unknown=error.type == UNKNOWN_ERROR, cause=error.type)
