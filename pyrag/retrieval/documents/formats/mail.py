"""E-mails, parsed by the standard library: headers, text, and attachments."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import default as email_policy
from email.utils import parsedate_to_datetime
from typing import cast

from pyrag.errors import DataError

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_TEXTS = ("text/plain", "text/html")
_UNREADABLE = "\ufffd"
_FROM_LINE = re.compile(  # above a header, unlike a line of text that begins with this word
    rb"(?:(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n(?=>?[!-9;-~]+:[ \t\r\n])"
)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MESSAGE = "message/rfc822"


@dataclass(frozen=True, slots=True)
class Mail:
    """Parts of an e-mail.

    Attributes:
        headers: Subject, senders, receivers and date, as written.
        date: Date in ISO format; empty if it is missing or invalid.
        texts: Texts of the message, each with True if it is HTML.
        attachments: Names and contents of the attachments.
    """

    headers: dict[str, str]
    date: str = ""
    texts: list[tuple[bytes, bool]] = field(default_factory=list)
    attachments: list[tuple[str, bytes]] = field(default_factory=list)


def parsed_mail(data: bytes, name: str) -> Mail:
    """Parse an e-mail. Of a text in several forms, the plain text is used, or else the HTML.

    Args:
        data: The e-mail.
        name: Name of the file in messages.

    Raises:
        DataError: The file is not an e-mail.
    """
    try:
        message = message_from_bytes(data, policy=email_policy)
        headers = {name: text for name in _HEADERS if (text := _header(message, name))}
        mail = Mail(headers, _date(headers.get("Date", "")))
        for part in _parts(message):
            _add(part, mail)
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:  # of hostile mails
        raise DataError(f"{name} cannot be read as an e-mail ({error}): save it again, or save it as text") from error
    if not headers and not mail.attachments:
        raise DataError(f"{name} is not an e-mail (it has no subject, sender or date): save it again, or as .txt")
    return mail


def mailbox_messages(data: bytes) -> list[bytes]:
    """Return the e-mails in a mailbox, each of which begins below a line with the word From.

    Args:
        data: Content of the file.
    """
    messages = _FROM_LINE.split(b"\n\n" + data)
    return [_QUOTED_FROM.sub(rb"\1", message) for message in messages if message.strip()]


def _header(message: EmailMessage, name: str) -> str:
    try:
        value = str(message[name] or "")
    except Exception:  # the library fails on some malformed headers with various errors
        value = _UNREADABLE
    if _UNREADABLE in value:  # bytes that are not encoded as the standard requires
        raw = next(str(raw) for key, raw in message.raw_items() if key.lower() == name.lower())
        value = _decoded(raw.encode("utf-8", "surrogateescape"), "utf-8")
    return " ".join(value.split())


def _decoded(data: bytes, encoding: str) -> str:
    for candidate in (encoding, "utf-8", "windows-1252"):
        with suppress(UnicodeError, LookupError):
            return data.decode(candidate)
    return data.decode("windows-1252", "replace")


def _date(text: str) -> str:
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(text).isoformat()
    return ""


def _parts(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts without parts of their own; of alternative texts, only the best one."""
    if part.get_content_type() == _MESSAGE or not part.is_multipart():
        yield part
        return
    parts = [cast(EmailMessage, inner) for inner in part.iter_parts()]
    if part.get_content_type() == "multipart/alternative":
        body = part.get_body(("plain", "html"))
        if body is not None and not _content(body).strip():
            body = part.get_body(("html",)) or body
        alternatives = [inner for inner in parts if inner.get_content_type() not in (*_TEXTS, "multipart/related")]
        parts = [*([cast(EmailMessage, body)] if body is not None else []), *alternatives]
    for inner in parts:
        yield from _parts(inner)


def _add(part: EmailMessage, mail: Mail) -> None:
    kind, name = part.get_content_type(), part.get_filename() or ""
    is_broken = part.get_content_maintype() == "multipart"  # without the parts that it announces
    if (kind in _TEXTS or is_broken) and not name and not part.is_attachment():
        mail.texts.append((_content(part), kind == "text/html"))
        return
    if kind == _MESSAGE:
        inner = cast(list[EmailMessage], part.get_payload())[0]
        mail.attachments.append(
            (name or f"{_header(inner, 'Subject') or 'message'}.eml", inner.as_bytes(policy=email_policy))
        )
        return
    content = _content(part)
    if content.strip():
        mail.attachments.append((name or f"attachment{mimetypes.guess_extension(kind) or ''}", content))


def _content(part: MIMEPart) -> bytes:
    """Return the content of a part; for texts, as UTF-8."""
    content = cast(bytes, part.get_payload(decode=True) or b"")
    if part.get_content_type() not in _TEXTS and part.get_content_maintype() != "text":
        return content
    return _decoded(content, part.get_content_charset("utf-8")).replace("\r\n", "\n").encode("utf-8", "replace")
