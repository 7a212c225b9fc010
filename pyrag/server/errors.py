"""Errors of the service as HTTP sees them: a status, a code word and one sentence.

The sentence holds no paths and inner addresses of the server, and no excerpts of what other servers replied.
The log has the sentences of failures with their excerpts.
"""

from __future__ import annotations

import logging
import re

from pyrag._io.excerpts import has_excerpt, without_excerpts
from pyrag._io.redaction import STRUCK, without_secrets
from pyrag.errors import PyRAGError, UsageError

_PATH = re.compile(r"""(['"])~?/(?!/)[^'"\n]+\1|(?<![\w/.~\])<])~?/(?!/)[^\s:'",;()]+""")
_END = r"""[^\s'",;:.)\]}>…]"""
_NAMED_URL = re.compile(rf"""@https?://(?:[^\s'",;)\]}}>]*{_END})?""")  # of a model server: openai:MODEL@URL
_URL = re.compile(rf"""(?i)(?<![a-z0-9+.-])[a-z0-9+.-]++://(?:[^\s'",;)\]}}>]*{_END})?""")
_HOST = re.compile(r"(?<![\w.])(?:(?:\d{1,3}\.){3}\d{1,3}(?::\d++)?|(?:localhost|\[[0-9a-f:]++\]):\d++)(?![\w.]*\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
MAX_MESSAGE = 2000  # characters


class ApiError(Exception):
    """A request that is refused.

    Args:
        status: HTTP status of the reply.
        code: word for programs, such as `unknown_index`.
        message: one sentence with the cure.
        retry_after: seconds after which the same request may succeed; sent as `Retry-After`.
        param: field of the request that is wrong.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after, self.param = status, code, retry_after, param

    @property
    def headers(self) -> dict[str, str]:
        """The reply's headers beside those of its body."""
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {**found, "WWW-Authenticate": "Bearer"} if self.status == 401 else found

    @property
    def body(self) -> dict[str, object]:
        """The reply, in the form that clients of OpenAI's API expect."""
        kind = kind_of(self.status)
        return {"error": {"message": self.sentence, "type": kind, "param": self.param, "code": self.code}}

    def body_at(self, path: str) -> dict[str, object]:
        """Return the reply at a path; Search-R1's protocol has a bare sentence there."""
        return {"error": self.sentence} if path == "/retrieve" else self.body

    @property
    def sentence(self) -> str:
        """The message on one line, as text that can be sent, whatever of the request it quotes."""
        text = _CONTROL.sub(" ", str(self)).encode("utf-8", "replace").decode()
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def kind_of(status: int) -> str:
    """Return OpenAI's word for a class of statuses."""
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def from_pyrag(error: PyRAGError) -> ApiError:
    """Return a deliberate error as a refusal: 400 where the request is at fault, else 503, which is logged."""
    at_fault = isinstance(error, UsageError)
    if not at_fault or has_excerpt(str(error)):
        log_failure(str(error))
    return ApiError(400 if at_fault else 503, error.kind, public_text(str(error)))


def log_failure(message: str) -> None:
    """Log what failed, as the reply to the caller leaves addresses, paths and excerpts out."""
    logging.getLogger("pyrag.server").warning("%s", without_secrets(_CONTROL.sub(" ", message)))


def public_text(text: str) -> str:
    """Return a message on one line, without secrets, excerpts, and paths and inner addresses of the server."""
    return " ".join(public_lines(text).split())


def public_lines(text: str) -> str:
    """Return a text without secrets, excerpts, and paths and inner addresses of the server, in its lines."""
    text = _URL.sub(STRUCK, _NAMED_URL.sub("", without_secrets(without_excerpts(text))))
    return _PATH.sub("a file of the server", _HOST.sub(STRUCK, text))
