"""Address of a service, with its secret parts separated."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from pyrag._io.http.errors import shown_url
from pyrag._io.redaction import secrets_of_query
from pyrag.errors import ConfigError

_SCHEME = re.compile(r"\A(?:Bearer|Basic|Digest|Token|ApiKey)\s+", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s;,]{4,}")
_ASSIGNED = re.compile(r"=\s*\"?([^\s;,\"]{4,})")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a service, whose base URL has no credentials and may appear in messages.

    Attributes:
        query: Query that is appended to every path, with its question mark.
        login: Header for the user and password in the URL.
        secrets: User, password and values of the query, which messages must not repeat.
    """

    base: str
    query: str
    login: Mapping[str, str]
    secrets: tuple[str, ...]


def read_address(url: str, name: str) -> Address:
    """Return the parts of a service's URL.

    Args:
        url: HTTP or HTTPS URL, which may hold user, password and query.
        name: Name of the service in messages.

    Raises:
        ConfigError: The URL is not an HTTP address.
    """
    try:
        parts = urlsplit(url.strip())
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{shown_url(url)!r} is not the URL of a {name}: write it like http://127.0.0.1:8000")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))
    secrets = [*secrets_of_query(parts.query)]
    login = {}
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        pair = f"{user}:{password}"
        login["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        secrets += [pair, user, password, parts.username, parts.password or ""]
    return Address(base, f"?{parts.query}" if parts.query else "", login, tuple(dict.fromkeys(filter(None, secrets))))


def checked_headers(headers: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return headers that can be sent.

    Args:
        headers: Header values by name.
        name: Name of the service in messages.

    Raises:
        ConfigError: A value has a line break or an odd character. The message does not show the value.
    """
    for key, value in headers.items():
        if any(ord(char) < 32 or ord(char) > 126 for char in value):
            raise ConfigError(f"the {key} header for the {name} holds a line break or an odd character: check the key")
    return headers


def secrets_of_headers(headers: Mapping[str, str]) -> list[str]:
    """Return the tokens in headers: words, and values after an equals sign, except for a scheme such as `Bearer`."""
    secrets: list[str] = []
    for key, value in headers.items():
        if key != "Content-Type":
            tokens = _SCHEME.sub("", value.strip())
            secrets += [tokens, *_TOKEN.findall(tokens), *_ASSIGNED.findall(tokens)]
    return list(dict.fromkeys(secrets))
