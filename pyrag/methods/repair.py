"""Repair loop for methods that write programs: run a program, show its author the error, and run the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pyrag.episode.episode import Episode
from pyrag.episode.plan_checks import Problem, check_plan
from pyrag.errors import BadOutputError, ContextLengthError, ProgramFailedError
from pyrag.methods.program_result import Failure, Result, execute
from pyrag.methods.typed_result import CAUSE
from pyrag.trace.events import Planned, Rejected
from pyrag.trace.model import UNKNOWN, Answer, Program


@dataclass(frozen=True, slots=True)
class Draft:
    """Program as its author wrote it, with the author's note (see `AgentReply`)."""

    program: Program
    note: str = ""
    doubt: bool = False


_HAPPENED = (
    "These calls have happened and are not made again. Make them with the same arguments, and they are answered from "
    "the record: "
)

# Function from a failed program, the message for its author and the origin ("check", "repair") to the next program.
# Raises `BadOutputError` if the author returns no program.
Revise = Callable[[Program, str, str], Awaitable[Draft]]


async def run_repaired(episode: Episode, program: Program | None, revise: Revise, repairs: int) -> Result:
    """Return the result of the first program that produces one.

    Args:
        episode: Episode of the question.
        program: First program, or None.
        revise: Function that writes the next program.
        repairs: Maximum number of revisions.

    Raises:
        ProgramFailedError: The last revision failed too.
        PyRAGError: The episode's gate does not let the program run.
    """
    rerouted = refitted = False
    ended: Result | Failure = Failure("", "")
    rounds = 0
    if program is not None and episode.gate is not None:
        await episode.gate.pass_through(episode, program)
    while program is not None:
        ended = await _run(episode, program)
        if isinstance(ended, Result):
            if left_out := episode.effects.left_out():
                episode.warn(f"happened in an earlier program, and not in the one that gave the answer: {left_out}")
            return ended
        # An unknown answer is a lack of evidence, not a bug, so only one other program is tried. So it is for a value
        # of another type than the caller's.
        if rounds == repairs or (ended.unknown and rerouted) or (ended.cause == CAUSE and refitted):
            break
        rerouted = rerouted or ended.unknown
        refitted = refitted or ended.cause == CAUSE
        rounds += 1
        program = await _request_revision(episode, program, ended.message, "repair", revise)
    assert isinstance(ended, Failure)
    if ended.unknown:
        episode.warn(f"no way around an unknown answer: {ended.summary}")
        return Result(Answer(UNKNOWN, known=False))
    message = f"no program ran to an answer; the last one ended like this: {ended.summary}"
    if happened := episode.effects.summary():
        message += f"; these calls have happened: {happened}"
    raise ProgramFailedError(message, cause=ended.cause)


async def revise_after_checks(
    episode: Episode, program: Program, revise: Revise, check: Callable[[Program], Sequence[Problem]]
) -> Program:
    """Have a program revised once if checks find problems.

    If the planner returns the same program again, run it and add a warning.

    Args:
        episode: Episode of the question.
        program: The program, which has not run yet.
        revise: Function that writes the next program.
        check: Function that returns the problems of a program.
    """
    objections = check(program)
    if not objections:
        return program
    episode.programs.append(program)
    better = await _request_revision(episode, program, "\n".join(map(str, objections)), "check", revise)
    if better is None:
        episode.programs.pop()
        better = program
    for problem in check(better):
        episode.warn(f"plan check: {problem}")
    return better


async def _run(episode: Episode, program: Program) -> Result | Failure:
    """Run a program, unless a check finds a fatal problem."""
    fatal = [problem for problem in problems(episode, program) if problem.fatal]
    if not fatal:
        return await execute(episode, program)
    episode.programs.append(program)
    return Failure("\n".join(map(str, fatal)), str(fatal[0]), cause="check")


def problems(episode: Episode, program: Program) -> tuple[Problem, ...]:
    """Return the problems that plan checks find in a program, fatal ones first.

    Args:
        episode: Episode of the question, with the sub-queries and primitives for the checks.
        program: The program, which may have syntax errors.
    """
    return _problems(
        program.source,
        episode.sub_queries,
        episode.primitives,
        tuple(episode.tools),
        episode.question,
        tuple(episode.inputs),
    )


@lru_cache(maxsize=256)  # programs are checked when they are written and again before they run
def _problems(
    source: str,
    sub_queries: tuple[str, ...],
    primitives: tuple[str, ...],
    tools: tuple[str, ...],
    question: str,
    inputs: tuple[str, ...],
) -> tuple[Problem, ...]:
    from pyrag_helpers import ERRORS, HELPERS

    return tuple(check_plan(source, sub_queries, primitives, (*HELPERS, *ERRORS, *inputs), tools, question))


async def _request_revision(
    episode: Episode, program: Program, error: str, origin: str, revise: Revise
) -> Program | None:
    """Return a new program, or None if the author writes none or the same one again."""
    episode.observer(Rejected(error))
    episode.programs[-1] = replace(episode.programs[-1], error=error)
    if happened := episode.effects.summary():
        error += f"\n\n{_HAPPENED}{happened}"
    try:
        draft = await revise(program, error, origin)
    except (BadOutputError, ContextLengthError) as refusal:
        episode.warn(str(refusal))
        return None
    if draft.program.source.strip() == program.source.strip():
        return None
    return announce(episode, draft)


def announce(episode: Episode, draft: Draft) -> Program:
    """Return the program of a draft, and report it to the observer.

    Args:
        episode: Episode of the question.
        draft: The program with its note.
    """
    episode.observer(Planned(draft.program, draft.note))
    if draft.note:
        episode.keep_note(draft.note, doubt=draft.doubt)
    return draft.program
