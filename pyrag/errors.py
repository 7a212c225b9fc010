"""Every error pyrag raises on purpose. Each says what was being done, with what, and what to do next.

PyRAGError                    exit code 1
├── UsageError                exit code 2   the caller asked for something that makes no sense
│   ├── ConfigError           a setting is unknown or has a wrong value
│   │   └── FilterError       a filter of passages cannot be read
│   └── DataError             a file the user gave cannot be read as what it should be
├── ServiceError              exit code 3   a model or retriever could not be used
│   ├── RetryableServiceError it may work later: timeouts, 5xx, 429, connection refused or reset
│   ├── PermanentServiceError it will not: 400, 401, unknown model
│   │   └── ContextLengthError the prompt is longer than the model's window
│   └── MalformedReplyError   it replied with something that its protocol does not allow
├── StorageError              exit code 1   a file of pyrag's own cannot be written: the disk is full, say
├── BadOutputError            a model's text could not be read as what its agent must return
├── ProgramFailedError        the program still failed after the last repair
├── RepeatedEffectError       a program would repeat a call with effects that has happened
├── BudgetExceededError       a limit of calls, tokens or time was reached; what is done so far is kept
└── ReplayError               a recording does not hold what was asked of it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pyrag._io.redaction import without_secrets

_MAX_COMPARED = 100  # characters of a name; comparing takes time by the square of its length


class PyRAGError(Exception):
    """Base of all errors of this package; `exit_code` is what a command ends with. Addresses in a message lose their
    users, passwords and queries."""

    exit_code = 1
    kind = "error"  # the word that traces and `--json` use

    def __init__(self, message: str = "") -> None:
        super().__init__(without_secrets(message))


class UsageError(PyRAGError):
    exit_code = 2
    kind = "usage"


class ConfigError(UsageError):
    kind = "config"


class FilterError(ConfigError):
    pass


class DataError(UsageError):
    kind = "data"


class StorageError(PyRAGError):
    """A file of results cannot be written. It ends a batch, where other errors end a question."""

    kind = "storage"


class ServiceError(PyRAGError):
    """A model server, retriever server or index failed. `service` names it with its address."""

    exit_code = 3
    kind = "service"

    def __init__(self, message: str, *, service: str = "") -> None:
        super().__init__(message)
        self.service = service


class RetryableServiceError(ServiceError):
    """`retry_after` is what the server asked for, in seconds; `timed_out`: it did not reply in the time it had."""

    def __init__(
        self, message: str, *, service: str = "", retry_after: float | None = None, timed_out: bool = False
    ) -> None:
        super().__init__(message, service=service)
        self.retry_after = retry_after
        self.timed_out = timed_out


class PermanentServiceError(ServiceError):
    """`status` is the HTTP status and `detail` the start of what came with it, where there was a reply."""

    def __init__(self, message: str, *, service: str = "", status: int | None = None, detail: str = "") -> None:
        super().__init__(message, service=service)
        self.status = status
        self.detail = detail


class ContextLengthError(PermanentServiceError):
    cause = "context"  # the word that traces use


class MalformedReplyError(ServiceError):
    pass


class BadOutputError(PyRAGError):
    """`usage` is what the agent's calls cost all the same, a `pyrag.trace.model.Usage`; None without a call."""

    kind = "bad_output"

    def __init__(self, message: str, usage: Any = None) -> None:
        super().__init__(message)
        self.usage = usage


class ProgramFailedError(PyRAGError):
    """`cause` is the type of the exception, the limit that stopped the program, `refused`, `check` or `no_answer`."""

    kind = "program"

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


class RepeatedEffectError(PyRAGError):
    kind = "effects"


class BudgetExceededError(PyRAGError):
    kind = "budget"


class ReplayError(PyRAGError):
    kind = "replay"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the known name most like it, else all known names.

    Args:
        name: The unknown name.
        known: All that are known.
    """
    known = list(known)
    close = difflib.get_close_matches(name[:_MAX_COMPARED], known, n=1)
    return f": did you mean {close[0]!r}?" if close else f": choose from {', '.join(known)}"


def install_extra(extra: str = "") -> str:
    """Return how to install pyrag with one of its extras: the end of a sentence about a missing package.

    Args:
        extra: Name of the extra, or several joined by commas; empty for pyrag without extras.
    """
    what = f"'.[{extra}]'" if extra else "."
    return f"run pip install {what} in a checkout of pyrag"
