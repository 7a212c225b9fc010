"""Errors that end a question, in the form that traces store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrag._io.redaction import without_secrets
from pyrag.errors import ContextLengthError, ProgramFailedError, PyRAGError, ServiceError, UsageError
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Answer, Trace, TraceError
from pyrag_sandbox import SandboxError

if TYPE_CHECKING:
    from pyrag.episode.episode import Episode
    from pyrag.runtime.engines import Engines


def late(episode: Episode, settings: Settings, engines: Engines) -> TraceError:
    """Return the error for a question whose deadline has passed.

    Args:
        episode: Episode of the question, whose open steps name the service at work.
        settings: Settings with the deadline.
        engines: Engines that report their pace.
    """
    deadline = "" if settings.deadline is None else f" of {settings.deadline:g} s"  # a replay may have none
    passed = f"the deadline{deadline} passed{_waiting_for(episode)}"
    return TraceError("deadline", "; ".join(filter(None, (passed, engines.pace()))), 1)


def foreign_timeout(failure: TimeoutError) -> TraceError:
    """Return the error for a question that ended with a `TimeoutError` in a caller's part, before any deadline."""
    words = f": {failure}" if str(failure) else ""
    message = f"a model, agent or method of your own ran out of time (TimeoutError{words}): look into its code"
    return TraceError(ServiceError.kind, message, ServiceError.exit_code)


def as_trace_error(failure: PyRAGError | SandboxError) -> TraceError:
    """Convert an error of pyrag or of the sandbox to the form that traces store."""
    if isinstance(failure, SandboxError):
        return TraceError("sandbox", str(failure), ServiceError.exit_code)
    cause = failure.cause if isinstance(failure, ProgramFailedError | ContextLengthError) else ""
    line, text = getattr(failure, "line", None), getattr(failure, "source_line", "")
    return TraceError(failure.kind, str(failure), failure.exit_code, cause, line, text)


def _waiting_for(episode: Episode) -> str:
    """Return a clause that names the service that was still at work when the deadline passed, with advice."""
    open_steps = [step for step in episode.steps if not step.seconds and not step.error]
    if open_steps:
        step = open_steps[-1]
        service = episode.retriever.name if step.primitive == "retrieve" else episode.agents.name
        return f" while {step.primitive} waited for {service}: raise --deadline or look at that service"
    if not episode.programs and not episode.steps:
        return f" before {episode.agents.name} had written a program: raise --deadline or look at that service"
    return ": raise --deadline"


def failed_trace(question: object, error: Exception) -> Trace:
    """Return the trace of a question that could not be asked, or whose answering failed because of a bug.

    Args:
        question: The question, of any type.
        error: Error that ended it.
    """
    if isinstance(error, UsageError):
        failure = TraceError(error.kind, str(error), error.exit_code)
    else:
        cure = "internal error; ask the question alone to see its traceback"
        failure = TraceError("crash", without_secrets(f"{type(error).__name__}: {error} ({cure})"))
    shown = str(question).encode("utf-8", "backslashreplace").decode()
    return Trace(shown, Answer(UNKNOWN, known=False), error=failure)
