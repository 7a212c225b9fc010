"""Headers of the caller's own that model servers get with every request, such as a key for a gateway.

They come from the environment or from a file that only the user can read, since they may hold keys. They are sent to
every model server and to every server of embeddings, as the API key is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pyrag._io.specs import expanded
from pyrag.errors import ConfigError

HEADERS_VARIABLE = "PYRAG_HEADERS"
HEADERS_FILE_VARIABLE = "PYRAG_HEADERS_FILE"
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OURS = ("accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding")


def with_headers(api_key: str | None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the headers of a request: the caller's own, and the API key unless one of them is `Authorization`.

    Args:
        api_key: Key of the server, if it needs one.
        environ: Environment variables; by default the process's.

    Raises:
        ConfigError: A line has another form than `Name: value`, or the file cannot be read, or others can read it.
    """
    environ = os.environ if environ is None else environ
    headers = {"authorization": ("Authorization", f"Bearer {api_key}")} if api_key else {}
    if file := environ.get(HEADERS_FILE_VARIABLE, "").strip():
        headers |= _parsed(private_text(expanded(file), HEADERS_FILE_VARIABLE), file)
    headers |= _parsed(environ.get(HEADERS_VARIABLE, ""), HEADERS_VARIABLE)
    return dict(headers.values())


def _parsed(text: str, place: str) -> dict[str, tuple[str, str]]:
    """Return names and values of headers by their names in lower case."""
    headers: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, value = line.strip().partition(":")
        if not colon or not _NAME.fullmatch(name) or not value.strip() or not value.strip().isprintable():
            raise ConfigError(f"line {number} of {place} is not a header: write it as Name: value, one per line")
        if name.lower() in _OURS:
            raise ConfigError(f"line {number} of {place} sets {name}, which pyrag sets itself: remove the line")
        headers[name.lower()] = name, value.strip()
    return headers


def private_text(file: Path, variable: str) -> str:
    """Return the text of a file with a secret.

    Args:
        file: The file.
        variable: Environment variable that names it.

    Raises:
        ConfigError: The file cannot be read, or others can read it.
    """
    what = "headers" if variable == HEADERS_FILE_VARIABLE else "key"
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"cannot read the {what} file {file} of {variable}: {reason}") from error
    if mode & 0o077:
        raise ConfigError(f"others can read the {what} file {file} (mode {mode & 0o777:o}): run chmod 600 {file}")
    return text
