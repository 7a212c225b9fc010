"""Failures of HTTP requests: messages, advice, and whether to try again.

These are plain functions of an exception or a reply; `pyrag._io.http.client` acts on the faults.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Literal

from pyrag._io.excerpts import excerpt

if TYPE_CHECKING:
    import aiohttp

Fault = Literal["busy", "timeout", "unreachable", "other"]

_UNREACHABLE: Fault = "unreachable"
_NO_PROXY = "check the proxy (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY or the setting proxy), or name the host in NO_PROXY"
_PROXY_CURES = {407: "write the proxy's user and password into its URL, http://USER:PASSWORD@HOST:PORT"}
_QUOTED = 300  # characters of a server's own words that an error repeats
# Replies for which waiting does not help although the status is 500 (templates and context windows of llama.cpp,
# unknown fields) or 429 (OpenAI, Groq).
_REFUSED = re.compile(
    rb"raise_exception|Jinja|[Tt]emplate ?[Ee]rror|must alternate|strictly positive|ontext size has been exceeded"
    rb"|response_format|structured_outputs|[Uu]nexpected keyword|[Uu]nsupported (?:param|value|field)"
)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_QUOTA = re.compile(rb'"insufficient_quota"|"billing_|[Rr]equest too large for')


@dataclass(eq=False)
class FaultError(Exception):
    """Failed attempt, with what happened, what to do about it, and whether another attempt makes sense."""

    what: str
    cure: str
    retryable: bool = False
    retry_after: float | None = None
    _: KW_ONLY
    kind: Fault = "other"
    status: int | None = None
    detail: str = ""


class ReportedError(Exception):
    """Failure that a server reports within a stream, with the corresponding `status` and its message as `content`."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.content = content


class ReplyFormError(ValueError):
    """Error for a reply of the wrong form, whose message is pyrag's own and quotes nothing of the reply."""


class TransportError(Exception):
    """Cause of a failed attempt, with the HTTP library's message stripped of secrets."""


def is_transient(status: int, content: bytes) -> bool:
    """Return True if the same request may succeed if it is tried again.

    Args:
        status: HTTP status of the reply.
        content: Body of the reply.
    """
    if status == 501 or (status == 500 and _REFUSED.search(content)):
        return False
    return status >= 500 or (status in (408, 429) and not _QUOTA.search(content))


def connection_fault(error: Exception, cure: str, proxy: str = "") -> FaultError:
    """Return the fault for an exception of the HTTP library.

    Args:
        error: The exception.
        cure: Advice if the service cannot be reached.
        proxy: URL of the proxy. Empty if no proxy was used.
    """
    import aiohttp

    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return FaultError(
            f"could not be reached, as the proxy {proxy} {_refusal(error)}", _NO_PROXY, True, kind=_UNREACHABLE
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        what = f"could not be reached, as the proxy {proxy} replied HTTP {error.status}"
        return FaultError(what, _PROXY_CURES.get(error.status, _NO_PROXY), error.status >= 500, kind=_UNREACHABLE)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return _tls_fault(error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        what = "has a host name that could not be resolved"
        return FaultError(what, "check the URL and the network", True, kind=_UNREACHABLE)
    if isinstance(error, aiohttp.ClientConnectorError):
        return FaultError(_refusal(error), cure, True, kind=_UNREACHABLE)
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | OSError):
        what = "closed the connection before the reply was complete"
        return FaultError(what, "look into its log", True, kind=_UNREACHABLE)
    return FaultError(f"did not speak proper HTTP ({type(error).__name__})", "check that the URL and port are right")


def _refusal(error: aiohttp.ClientConnectorError) -> str:
    import errno

    if error.os_error.errno == errno.ECONNREFUSED:
        return "refused the connection"
    return f"could not be reached ({error.os_error.strerror or error.os_error})"


def _tls_fault(error: Exception) -> FaultError:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "") or "it does not fit the host"
        cure = "name the certificate of its authority with the setting ca_bundle, or in SSL_CERT_FILE"
        return FaultError(f"has a TLS certificate that cannot be trusted ({reason})", cure)
    return FaultError("does not speak TLS that can be trusted", "check that its address begins with https:// rightly")


def status_cure(status: int, headers: Mapping[str, str]) -> str:
    """Return the advice for an HTTP status.

    Args:
        status: HTTP status.
        headers: Headers of the reply.
    """
    if status in _PROXY_CURES:
        return _PROXY_CURES[status]
    if status in (401, 403):
        return "check the API key or password"
    if status in (404, 405):
        return "check the URL and the names given to it"
    if status == 429:
        return "wait, or lower --concurrency"
    if status // 100 == 3:
        return f"use the URL it redirects to, {_redirection(headers)}"
    if status >= 500:
        return "look into its log, or try again later"
    return "change what it complains about"


def _redirection(headers: Mapping[str, str]) -> str:
    return excerpt(shown_url(headers.get("Location", "")), _QUOTED) or "which it does not give"


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from `Retry-After`, which is a number or an HTTP date; None without the header."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    return float(value) if _SECONDS.fullmatch(value) else _seconds_until(value)


def _seconds_until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(date)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at  # HTTP dates are in GMT, even without a time zone
        return max(at.timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError, TypeError):
        return None


def server_words(text: str, redact: Callable[[str], str] = str) -> str:
    """Return an excerpt of the message in an error body.

    The message is in `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`; otherwise it is the whole
    text.

    Args:
        text: The body.
        redact: Function that removes secrets, applied before the text is shortened.
    """
    import msgspec

    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return "" if text.lstrip().startswith("<") else excerpt(text, _QUOTED)
    while isinstance(value, dict):
        value = next((value[key] for key in ("error", "message", "detail") if key in value), "")
    return excerpt(redact(str(value)), _QUOTED)


def shown_url(url: str) -> str:
    """Return a URL without anything that may be a credential: the text before the last @, and from the first ? or #."""
    start = re.split(r"[?#]", url, maxsplit=1)[0]
    if "@" not in start and "@" in url:  # ambiguous: a password with a question mark, or a query with an @
        return start.partition("://")[0] + "://…"
    return start.rpartition("@")[2]
