"""Errors of the service as HTTP sees them: a status, a code word and one sentence without paths of the server."""

from __future__ import annotations

import re

from pyrag._io.redaction import without_secrets
from pyrag.errors import PyRAGError, UsageError

_PATH = re.compile(r"(?<![\w/:.~])(?:~|/)[^\s:'\",;()]*/[^\s:'\",;()]+")


class ApiError(Exception):
    """A request that is refused.

    Args:
        status: HTTP status of the reply.
        code: word for programs, such as `unknown_index`.
        message: one sentence with the cure.
        retry_after: seconds after which the same request may succeed; sent as `Retry-After`.
    """

    def __init__(self, status: int, code: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after

    @property
    def body(self) -> dict[str, object]:
        """The reply, in the form that clients of OpenAI's API expect."""
        return {"error": {"message": public_text(str(self)), "type": kind_of(self.status), "code": self.code}}


def kind_of(status: int) -> str:
    """Return OpenAI's word for a class of statuses."""
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def from_pyrag(error: PyRAGError) -> ApiError:
    """Return a deliberate error as a refusal: 400 where the request is at fault, else 503."""
    return ApiError(400 if isinstance(error, UsageError) else 503, error.kind, str(error))


def public_text(text: str) -> str:
    """Return a message on one line, without secrets and without paths of the server's files."""
    return _PATH.sub("a file of the server", " ".join(without_secrets(text).split()))
