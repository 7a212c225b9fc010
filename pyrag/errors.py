"""Errors that pyrag raises on purpose. Each message says what was being done, with what, and what to do next.

PyRAGError                    exit code 1
├── UsageError                exit code 2   the caller's request is invalid
│   ├── ConfigError           a setting is unknown or has an invalid value
│   │   └── FilterError       a filter of passages cannot be parsed
│   └── DataError             a file of the user cannot be read in the expected form
├── ServiceError              exit code 3   a model or retriever could not be used
│   ├── RetryableServiceError a retry may help: timeouts, 5xx, 429, connection refused or reset
│   ├── PermanentServiceError a retry does not help: 400, 401, unknown model
│   │   └── ContextLengthError the prompt is longer than the model's window
│   └── MalformedReplyError   the reply violates the service's protocol
├── StorageError              exit code 1   one of pyrag's own files cannot be written, such as on a full disk
├── BadOutputError            a model's text could not be parsed as its agent's reply
├── ProgramFailedError        the program still failed after the last repair
├── RepeatedEffectError       a program would repeat a call whose effects have already happened
├── FlowError                 a call with effects depends on retrieved passages, and nobody allowed it
├── BudgetExceededError       a limit of calls, tokens or time was reached; the work so far is kept
└── ReplayError               a recording does not hold a requested exchange
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pyrag._io.redaction import without_secrets

_MAX_COMPARED = 100  # characters of a name that are compared, which takes quadratic time


class PyRAGError(Exception):
    """Base of all errors of this package. `exit_code` is the exit status of a command.

    User names, passwords and queries are removed from addresses in messages.
    """

    exit_code = 1
    kind = "error"  # name of the error in traces and `--json`

    def __init__(self, message: str = "") -> None:
        super().__init__(without_secrets(message))


class UsageError(PyRAGError):
    """Error for an invalid request of the caller."""

    exit_code = 2
    kind = "usage"


class ConfigError(UsageError):
    """Error for a setting that is unknown or has an invalid value."""

    kind = "config"


class FilterError(ConfigError):
    """Error for a filter of passages that cannot be parsed."""


class DataError(UsageError):
    """Error for a file of the user that cannot be read in the expected form."""

    kind = "data"


class StorageError(PyRAGError):
    """Error for a file of results that cannot be written. It ends a batch; other errors only end a question."""

    kind = "storage"


class ServiceError(PyRAGError):
    """Error for a model server, retriever server or index that failed. `service` is its name and address."""

    exit_code = 3
    kind = "service"

    def __init__(self, message: str, *, service: str = "") -> None:
        super().__init__(message)
        self.service = service


class RetryableServiceError(ServiceError):
    """Error for a service that may work again later.

    `retry_after` is the server's requested delay in seconds; `timed_out` is True if it did not reply in time.
    """

    def __init__(
        self, message: str, *, service: str = "", retry_after: float | None = None, timed_out: bool = False
    ) -> None:
        super().__init__(message, service=service)
        self.retry_after = retry_after
        self.timed_out = timed_out


class PermanentServiceError(ServiceError):
    """Error for a service failure that a retry does not fix.

    `status` is the HTTP status and `detail` the beginning of the reply's body, if there was a reply.
    """

    def __init__(self, message: str, *, service: str = "", status: int | None = None, detail: str = "") -> None:
        super().__init__(message, service=service)
        self.status = status
        self.detail = detail


class ContextLengthError(PermanentServiceError):
    """Error for a prompt that is longer than the model's window."""

    cause = "context"  # name of the cause in traces


class MalformedReplyError(ServiceError):
    """Error for a reply that violates the service's protocol."""


class BadOutputError(PyRAGError):
    """Error for a model's text that cannot be parsed.

    `usage` is the cost of the agent's calls, a `pyrag.trace.model.Usage`; None if there was no call.
    """

    kind = "bad_output"

    def __init__(self, message: str, usage: Any = None) -> None:
        super().__init__(message)
        self.usage = usage


class ProgramFailedError(PyRAGError):
    """Error for a program that failed after the last repair.

    `cause` is the type of the exception, the limit that stopped the program, `refused`, `check`, `no_answer`, or
    `returns` for a value that does not have the caller's type. `line` is the line that failed, from 1, and
    `source_line` its text, if a caller's own program failed at a line.
    """

    kind = "program"

    def __init__(self, message: str, *, cause: str = "", line: int | None = None, source_line: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.line = line
        self.source_line = source_line


class RepeatedEffectError(PyRAGError):
    """Error for a call whose effects have already happened."""

    kind = "effects"


class FlowError(PyRAGError):
    """Error for a call with effects that depends on retrieved passages and was not allowed.

    `line` is the line of the program, from 1, and `source_line` its text, if a program made the call.
    """

    kind = "flow"

    def __init__(self, message: str, *, line: int | None = None, source_line: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.source_line = source_line


class BudgetExceededError(PyRAGError):
    """Error for a limit of calls, tokens or time that was reached."""

    kind = "budget"


class ReplayError(PyRAGError):
    """Error for a request that a recording does not hold."""

    kind = "replay"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the most similar known name, or all known names.

    Args:
        name: The unknown name.
        known: All known names.
    """
    known = list(known)
    close = difflib.get_close_matches(name[:_MAX_COMPARED], known, n=1)
    return f": did you mean {close[0]!r}?" if close else f": choose from {', '.join(known)}"


def install_extra(extra: str = "") -> str:
    """Return the end of a sentence about a missing package: it explains how to install pyrag with an extra.

    Args:
        extra: Name of the extra, or several joined by commas; empty for pyrag without extras.
    """
    what = f"'.[{extra}]'" if extra else "."
    return f"run pip install {what} in a checkout of pyrag"
