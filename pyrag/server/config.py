"""Options of the server that are not pyrag settings: address, limits and API keys."""

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
_WRITE, _EFFECTS = "+write", "+effects"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of a caller.

    Attributes:
        indexes: Names of the indexes that the caller may use; None for all.
        owner: Word derived from the caller's key, which conversations are bound to; empty for callers without a key.
        where: Filter of the passages that the caller may see; empty for no filter.
        writes: Whether the caller may add and delete documents of these indexes.
        effects: Whether programs of the caller's questions may make calls with effects that depend on passages.
    """

    indexes: frozenset[str] | None = None
    owner: str = ""
    where: str = ""
    writes: bool = False
    effects: bool = False

    def allows(self, index: str) -> bool:
        return self.indexes is None or index in self.indexes

    def scope(self, index: str) -> str:
        """Return the name under which traces over an index are stored. Callers with another filter do not see them."""
        return f"{index} where {self.where}" if self.where else index


NOBODY = Access(indexes=frozenset())
"""Rights of a caller without a key, on a server that requires keys."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Digests of the accepted keys, with the rights of each key."""

    digests: Mapping[bytes, Access] = field(default_factory=dict)

    def access(self, key: str) -> Access | None:
        """Return the rights of a key; None for an unknown key. Takes equally long for every key."""
        digest, match = _digest(key), None
        for known, access in self.digests.items():
            match = access if hmac.compare_digest(known, digest) else match
        return match

    def __bool__(self) -> bool:
        return bool(self.digests)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Address, limits and keys of a server.

    Attributes:
        indexes: Folders, retriever URLs or Qdrant specs by name; an index with several of them searches them all. If
            empty, the settings' index is used and named `default`.
        max_running: Maximum number of questions answered at the same time.
        max_waiting: Maximum number of questions in the queue; any others get 429.
        max_body: Maximum size of a request's body, in bytes.
        body_timeout: Seconds within which a body must arrive.
        max_batch: Maximum number of questions in a batch.
        traces: SQLite file of traces; None keeps them in memory.
        max_traces: Maximum number of traces; the oldest are deleted first.
        max_trace_mb: Maximum size of all traces, in megabytes; the oldest are deleted first.
        trace_days: Days that a trace is kept; None for no limit.
        shutdown_timeout: Seconds that running requests have to finish at shutdown.
        max_connections: Maximum number of open connections; the last is reserved for refusals. An additional connection
            closes the one that has been idle longest, or gets 503 if all are in use.
        max_per_address: Maximum number of connections from one address, enforced in the same way; None for no limit.
        header_timeout: Seconds within which the head of a request must arrive.
        stall_timeout: Seconds after which a client that stops reading is disconnected.
    """

    host: str = "127.0.0.1"
    port: int = 8010
    indexes: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
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
        """True if requests must name this machine as their host: the server listens on loopback and has no keys."""
        return is_loopback(self.host) and not self.keys


def is_loopback(host: str) -> bool:
    """Return True if an address can only be reached from this machine."""
    try:
        return host in _LOCAL_NAMES or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_keys(file: Path | None, environ: Mapping[str, str]) -> ApiKeys:
    """Return the keys in a file and in the environment.

    Args:
        file: File with one key per line. A key may be followed by the indexes that it may use, the rights `+write` and
            `+effects`, and a filter of passages, as in `KEY notes,wiki where team = "ops"`. `#` starts a comment.
        environ: Environment variables. `PYRAG_SERVE_API_KEY` may hold one more key, which may use all indexes.

    Raises:
        ConfigError: The file cannot be read or is empty, a key has fewer than 16 characters, a filter is wrong, or a
            key with a filter has the right to write.
    """
    lines: list[str] = []
    if file is not None:
        try:
            lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the API key file {file}: check its path and encoding") from error
        if not any(lines):
            raise ConfigError(f"the API key file {file} holds no key: write one key per line")
    if key := environ.get(KEY_VARIABLE, "").strip():
        lines.append(key)
    return ApiKeys(dict(map(_key, filter(None, lines))))


def read_indexes(named: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Return the places of indexes by name, from `NAME=PLACE` options. An option without a name sets the default index.

    Options with the same name form one index, which searches all of their places.

    Raises:
        ConfigError: A name has characters other than letters, digits, `-`, `_` and
            `.`.
    """
    places: dict[str, list[str]] = {}
    for option in named:
        name, separator, place = option.partition("=")
        if not separator or "/" in name or ":" in name:
            name, place = DEFAULT_INDEX, option
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or not name.isascii():
            raise ConfigError(f"{name!r} is not a valid name of an index: use letters, digits, - _ and .")
        places.setdefault(name, []).append(place)
    return {name: tuple(several) if len(several) > 1 else several[0] for name, several in places.items()}


def _key(line: str) -> tuple[bytes, Access]:
    key, _, rest = line.partition(" ")
    indexes, marked, where = f" {rest}".partition(" where ")
    if len(key) < MIN_KEY:
        raise ConfigError(f"an API key has only {len(key)} characters: use at least {MIN_KEY}")
    named, plus, rest = indexes.partition(" +")
    rights = f"+{rest}".split() if plus else []
    if unknown := [right for right in rights if right not in (_WRITE, _EFFECTS)]:
        raise ConfigError(f"an API key's line has {unknown[0]!r} after its rights: the rights are {_WRITE}, {_EFFECTS}")
    if marked and _WRITE in rights:
        raise ConfigError(f"an API key with a filter cannot have the right {_WRITE}: remove {_WRITE}, or the filter")
    names = frozenset(filter(None, (name.strip() for name in named.split(","))))
    digest = _digest(key)
    return digest, Access(
        names or None,
        hashlib.sha256(digest).hexdigest()[:16],
        str(filter_of(where)) if marked else "",
        _WRITE in rights,
        _EFFECTS in rights,
    )


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
