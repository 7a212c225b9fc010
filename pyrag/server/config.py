"""Options of the service that are no settings of pyrag: address, limits, API keys."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyrag.errors import ConfigError
from pyrag.retrieval.filters.language import filter_of

KEY_VARIABLE = "PYRAG_SERVE_API_KEY"
DEFAULT_INDEX = "default"
MIN_KEY = 16  # characters
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of a caller.

    Attributes:
        indexes: those that it may use; None for all of them.
        owner: a word that stands for its key, which conversations are bound to; empty for callers without one.
        where: filter of the passages that it may see; empty for none.
    """

    indexes: frozenset[str] | None = None
    owner: str = ""
    where: str = ""

    def allows(self, index: str) -> bool:
        return self.indexes is None or index in self.indexes

    def scope(self, index: str) -> str:
        """Return the name under which traces over an index are kept: callers with another filter do not see them."""
        return f"{index} where {self.where}" if self.where else index


NOBODY = Access(indexes=frozenset())
"""Rights of a caller without a key, on a server that asks for keys."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Digests of the keys that are accepted, with what each may use."""

    digests: Mapping[bytes, Access] = field(default_factory=dict)

    def access(self, key: str) -> Access | None:
        """Return what a key may use; None for an unknown key. Takes equally long for all keys."""
        given, found = _digest(key), None
        for known, access in self.digests.items():
            found = access if hmac.compare_digest(known, given) else found
        return found

    def __bool__(self) -> bool:
        return bool(self.digests)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Address, limits and keys of a server.

    Attributes:
        indexes: folders, retriever URLs or Qdrant specs by name; empty: the index of the settings, named `default`.
        max_running: questions answered at the same time.
        max_waiting: questions that may wait for a place; further ones get 429.
        max_body: bytes of a request's body.
        body_timeout: seconds that a body may take to arrive.
        max_batch: questions of one batch.
        traces: SQLite file of traces; None keeps them in memory.
        max_traces: traces that are kept; the oldest go first.
        max_trace_mb: megabytes that the kept traces may take; the oldest go first.
        trace_days: days that a trace is kept; None for no limit.
        shutdown_timeout: seconds that running requests get to end at shutdown.
        max_connections: open connections, the last of which is kept for refusals: one too many ends the one that
            waited longest for a request, or gets 503 if all are in use.
        max_per_address: open connections of one address, in the same way; None for no limit of its own.
        header_timeout: seconds that the head of a request may take to arrive.
        stall_timeout: seconds that a client may take to read on.
    """

    host: str = "127.0.0.1"
    port: int = 8010
    indexes: Mapping[str, str] = field(default_factory=dict)
    keys: ApiKeys = ApiKeys()
    allow_anonymous: bool = False
    max_running: int = 8
    max_waiting: int = 64
    max_body: int = 4 << 20
    body_timeout: float = 30.0
    max_batch: int = 64
    traces: Path | None = None
    max_traces: int = 1000
    max_trace_mb: float = 256.0
    trace_days: float | None = None
    shutdown_timeout: float = 5.0
    max_connections: int = 1000
    max_per_address: int | None = 256
    header_timeout: float = 10.0
    stall_timeout: float = 30.0

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.keys and not self.allow_anonymous:
            raise ConfigError(
                f"{self.host} can be reached from other machines: set {KEY_VARIABLE}, name an --api-key-file, "
                "or pass --allow-anonymous"
            )
        names = set(self.indexes) or {DEFAULT_INDEX}
        for access in self.keys.digests.values():
            if unknown := sorted((access.indexes or set()) - names):
                raise ConfigError(f"a key is bound to the index {unknown[0]!r}: choose from {', '.join(sorted(names))}")

    @property
    def local_only(self) -> bool:
        """True if requests must name this machine as their host: a server on loopback without keys."""
        return is_loopback(self.host) and not self.keys


def is_loopback(host: str) -> bool:
    """Return True if an address is reached from this machine alone."""
    try:
        return host in _LOCAL_NAMES or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_keys(file: Path | None, environ: Mapping[str, str]) -> ApiKeys:
    """Return the keys of a file and of the environment.

    Args:
        file: a key a line, optionally followed by the indexes it may use and by a filter of their passages,
            `KEY notes,wiki where team = "ops"`; `#` opens a comment.
        environ: may hold one more key, for all indexes, in `PYRAG_SERVE_API_KEY`.

    Raises:
        ConfigError: the file cannot be read or is empty, a key has fewer than 16 characters, or a filter is wrong.
    """
    lines: list[str] = []
    if file is not None:
        try:
            lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the API key file {file}: check its path and encoding") from error
        if not any(lines):
            raise ConfigError(f"the API key file {file} holds no key: write one a line")
    if given := environ.get(KEY_VARIABLE, "").strip():
        lines.append(given)
    return ApiKeys(dict(map(_key, filter(None, lines))))


def read_indexes(named: Iterable[str]) -> dict[str, str]:
    """Return indexes by name from `NAME=FOLDER` options; an option without a name is the default index.

    Raises:
        ConfigError: a name is given twice, or holds other characters than letters, digits, `-`, `_` and `.`.
    """
    found: dict[str, str] = {}
    for option in named:
        name, separator, place = option.partition("=")
        if not separator or "/" in name or ":" in name:
            name, place = DEFAULT_INDEX, option
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii():
            raise ConfigError(f"{name!r} is no name of an index: use letters, digits, - _ and .")
        if name in found:
            raise ConfigError(f"two indexes are named {name!r}: name them with --index NAME=FOLDER")
        found[name] = place
    return found


def _key(line: str) -> tuple[bytes, Access]:
    key, _, rest = line.partition(" ")
    indexes, marked, where = f" {rest}".partition(" where ")
    if len(key) < MIN_KEY:
        raise ConfigError(f"an API key has only {len(key)} characters: use at least {MIN_KEY}")
    names = frozenset(filter(None, (name.strip() for name in indexes.split(","))))
    digest = _digest(key)
    return digest, Access(
        names or None, hashlib.sha256(digest).hexdigest()[:16], str(filter_of(where)) if marked else ""
    )


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
