"""Errors of the service as HTTP replies: a status, a code and one sentence.

The sentence contains no paths or internal addresses of the server and no excerpts of other servers' replies. The log
has the complete message.
"""

from __future__ import annotations

import logging
import re

from pyrag._io.excerpts import has_excerpt, without_excerpts
from pyrag._io.redaction import STRUCK, without_secrets
from pyrag.errors import PyRAGError, UsageError
from pyrag.runtime.question_request import QuestionError

_PATH = re.compile(r"""(['"])~?/(?!/)[^'"\n]+\1|(?<![\w/.~\])<])~?/(?!/)[^\s:'",;()]+""")
_END = r"""[^\s'",;:.)\]}>…]"""
_NAMED_URL = re.compile(rf"""@https?://(?:[^\s'",;)\]}}>]*{_END})?""")  # of a model server: openai:MODEL@URL
_URL = re.compile(rf"""(?i)(?<![a-z0-9+.-])[a-z0-9+.-]++://(?:[^\s'",;)\]}}>]*{_END})?""")
_HOST = re.compile(r"(?<![\w.])(?:(?:\d{1,3}\.){3}\d{1,3}(?::\d++)?|(?:localhost|\[[0-9a-f:]++\]):\d++)(?![\w.]*\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
MAX_MESSAGE = 2000  # characters


class ApiError(Exception):
    """Refusal of a request.

    Args:
        status: HTTP status of the reply.
        code: Code for programs, such as `unknown_index`.
        message: One sentence that also says what to do.
        retry_after: Seconds after which the same request may succeed; sent as `Retry-After`.
        param: Field of the request that is wrong.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after, self.param = status, code, retry_after, param

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the reply other than those that describe its body."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return {**headers, "WWW-Authenticate": "Bearer"} if self.status == 401 else headers

    @property
    def body(self) -> dict[str, object]:
        """Body of the reply, in the form that clients of OpenAI's API expect."""
        kind = kind_of(self.status)
        return {"error": {"message": self.sentence, "type": kind, "param": self.param, "code": self.code}}

    def body_at(self, path: str) -> dict[str, object]:
        """Return the body of the reply for a path. For Search-R1's protocol (`/retrieve`), this is a plain sentence."""
        return {"error": self.sentence} if path == "/retrieve" else self.body

    @property
    def sentence(self) -> str:
        """The message on one line, as valid text of limited length."""
        text = _CONTROL.sub(" ", str(self)).encode("utf-8", "replace").decode()
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def kind_of(status: int) -> str:
    """Return OpenAI's name for a class of statuses."""
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def from_pyrag(error: PyRAGError) -> ApiError:
    """Convert pyrag's error to a refusal: 400 if the request is at fault, otherwise 503, which is also logged."""
    at_fault = isinstance(error, UsageError)
    if not at_fault or has_excerpt(str(error)):
        log_failure(str(error))
    code = error.code if isinstance(error, QuestionError) else error.kind
    return ApiError(400 if at_fault else 503, code, public_text(str(error)))


def log_failure(message: str) -> None:
    """Log a failure, including the addresses, paths and excerpts that are omitted from the reply to the caller."""
    logging.getLogger("pyrag.server").warning("%s", without_secrets(_CONTROL.sub(" ", message)))


def public_text(text: str) -> str:
    """Return a message on one line, without secrets, excerpts, server paths or internal addresses."""
    return " ".join(public_lines(text).split())


def public_lines(text: str) -> str:
    """Return a text without secrets, excerpts, server paths or internal addresses, keeping its line breaks."""
    text = _URL.sub(STRUCK, _NAMED_URL.sub("", without_secrets(without_excerpts(text))))
    return _PATH.sub("a file of the server", _HOST.sub(STRUCK, text))
