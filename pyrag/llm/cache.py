"""Replies stored on disk, so that equal requests are only paid for once.

`CachedChat` wraps any chat model. A request is identified by the model's name (for a local model, by its absolute path
and a fingerprint of its files), sampling and messages; its stored reply is returned with `Reply.cached` set.
`ReplyStore` is an SQLite file that any number of processes may use at once; when it exceeds its limit, the least
recently used replies are deleted.

A reply that was cut off is neither stored nor returned. Replies sampled at a temperature are stored too, so the same
request gets the same sample again. Equal requests in one process wait for the first one; equal requests in different
processes are all made. Keys and passwords in addresses are not part of a model's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from pyrag._io.specs import expanded
from pyrag._io.threads import PerLoop
from pyrag.errors import ConfigError, DataError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.spending import spending
from pyrag.llm.wrappers import Send, WrappedChat

T = TypeVar("T")
VERSION = 1  # version of the file's form
BUSY_SECONDS = 10.0  # time to wait for another process that is writing
_TOUCH_SECONDS = 60  # precision of the time of last use, since a write per read would be expensive
_CHECKED_SHARE = 0.01  # share of the limit that a process writes between two deletions of old replies
_HEADER = b"SQLite format 3\0"
_OVERHEAD = 100  # bytes of a row in addition to its reply
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, reply TEXT NOT NULL, size INTEGER NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used, size);
"""
_SIZE = "SELECT count(*), ifnull(sum(size), 0) FROM replies"
_DELETE_OLD = """
DELETE FROM replies WHERE key IN (
    SELECT key FROM (SELECT key, sum(size) OVER (ORDER BY used DESC, key) AS newer FROM replies) WHERE newer > ?
)
"""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Contents of a cache file."""

    path: str
    replies: int
    bytes: int  # of the replies
    file_bytes: int


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return `$XDG_CACHE_HOME/pyrag/replies.sqlite`, or the same below `~/.cache`.

    Raises:
        ConfigError: Neither folder is known.
    """
    environ = os.environ if environ is None else environ
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    folder = base if base.is_absolute() else expanded("~/.cache")
    if not folder.is_absolute():
        raise ConfigError(
            "the cache of replies has no folder, as HOME is not known: name a file, or set XDG_CACHE_HOME"
        )
    return folder / "pyrag" / "replies.sqlite"


class _UnavailableError(Exception):
    """Error for a locked file or a full disk, which must not make a question fail."""


class ReplyStore:
    """Replies by key in one file, which several threads and processes can use at once.

    Every method raises `DataError` if the file cannot be used. If other processes keep it locked, or the disk is full,
    a reply is not stored, and the question continues.

    Attributes:
        path: The SQLite file, created with the first reply.
    """

    def __init__(self, path: str | Path, limit: int = 1 << 30) -> None:
        """Set up the store without opening it. `limit` bounds the size of all replies in bytes, without overhead."""
        self.path = expanded(path)
        self._limit = limit
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._unchecked = 0  # bytes written since old replies were deleted

    def get(self, key: bytes) -> Reply | None:
        """Return the reply for a key, or None."""

        def read(db: sqlite3.Connection) -> Reply | None:
            row = db.execute("SELECT reply, used FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            now = int(time.time())
            if now - row[1] >= _TOUCH_SECONDS:
                db.execute("UPDATE replies SET used = ? WHERE key = ?", (now, key))
            return Reply(**{**json.loads(row[0]), "cached": True})

        return self._tried(read, None)

    def put(self, key: bytes, reply: Reply) -> None:
        """Store a reply, unless it was cut off or is larger than the limit.

        Args:
            key: Digest of the request (`request_key`).
            reply: The reply. An earlier reply with the same key is kept.
        """
        if reply.cut_off:
            return
        text = json.dumps(asdict(reply))
        size = len(text) + _OVERHEAD

        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            row = (key, text, size, int(time.time()))
            db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)
            self._unchecked += size
            if self._unchecked >= self._limit * _CHECKED_SHARE:
                db.execute(_DELETE_OLD, (self._limit,))
                self._unchecked = 0
            db.execute("COMMIT")

        if size <= self._limit:
            self._tried(write, None)

    def check(self) -> None:
        """Raise `DataError` now if the file cannot be used, rather than during a question."""
        self._tried(lambda db: db.execute("SELECT 1 FROM replies LIMIT 1").fetchone(), None)

    def info(self) -> CacheInfo:
        """Return number and size of the replies. A missing file is not created."""
        if not self.path.exists():
            return CacheInfo(str(self.path), 0, 0, 0)
        with self._opened() as db:
            replies, size = db.execute(_SIZE).fetchone()
        return CacheInfo(str(self.path), replies, size, self.path.stat().st_size)

    def tokens(self) -> int:
        """Return the tokens of all replies and their prompts."""
        if not self.path.is_file():
            return 0
        with self._opened() as db:
            (total,) = db.execute(
                "SELECT total(json_extract(reply, '$.prompt_tokens') + json_extract(reply, '$.completion_tokens')) "
                "FROM replies"
            ).fetchone()
        return int(total)

    def clear(self) -> CacheInfo:
        """Delete all replies, or the files if they are damaged, and return what was stored.

        Raises:
            DataError: The file was never a cache; a mistyped path must not delete other data.
        """
        try:
            before = self.info()
            if before.file_bytes:
                with self._opened() as db:
                    db.execute("DELETE FROM replies")
                    db.execute("VACUUM")
            return before
        except DataError:
            if not self._was_a_cache():
                raise
            size = self.path.stat().st_size if self.path.is_file() else 0
            self.remove()
            return CacheInfo(str(self.path), 0, 0, size)

    def remove(self) -> None:
        """Delete the files, if they exist."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _was_a_cache(self) -> bool:
        """Return True if an unusable file is a damaged cache rather than some other file."""
        if self.path == default_path():
            return True
        try:
            with self.path.open("rb") as file:
                if file.read(len(_HEADER)) != _HEADER:
                    return False
            with contextlib.closing(sqlite3.connect(self.path)) as db:
                return bool(db.execute("SELECT 1 FROM sqlite_master WHERE name = 'replies'").fetchone())
        except sqlite3.DatabaseError:  # too damaged to tell
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _tried(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            with self._opened(patient=True) as db:
                return work(db)
        except _UnavailableError:
            return otherwise

    @contextlib.contextmanager
    def _opened(self, *, patient: bool = False) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None or self._process != os.getpid():
                    self._connection, self._process = self._open(), os.getpid()
                    # Nothing has to be done when the process exits, and a fork must not close its parent's connection.
                    weakref.finalize(self, self._connection.close).atexit = False
                yield self._connection
            except (sqlite3.DatabaseError, OSError) as error:
                if patient and isinstance(error, sqlite3.OperationalError) and _is_transient(error):
                    raise _UnavailableError from error
                cure = "run pyrag cache clear or delete it, or name" if self._was_a_cache() else "name"
                raise DataError(
                    f"the cache {self.path} cannot be used ({_reason(error)}): {cure} another file in the setting cache"
                ) from error
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._connection.rollback()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # prompts may be private
        db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            # In this order, since both change in one transaction of the process that creates the file.
            in_use = db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                if version:
                    raise sqlite3.DatabaseError(f"it has version {version}, not {VERSION}")
                if in_use:
                    raise sqlite3.DatabaseError("it is another kind of database")
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            db.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            db.close()
            raise
        return db


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _is_transient(error: sqlite3.OperationalError) -> bool:
    return any(word in str(error) for word in ("locked", "busy", "full", "readonly"))


class CachedChat(WrappedChat):
    """Chat model whose replies are stored. The store runs in a thread, so that a slow disk blocks no event loop.

    Args:
        model: Model that answers requests without a stored reply.
        store: File of replies.
    """

    def __init__(self, model: ChatModel, store: ReplyStore) -> None:
        super().__init__(model)
        self.store = store
        self._turns: PerLoop[WeakValueDictionary[bytes, asyncio.Lock]] = PerLoop(WeakValueDictionary)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        """Return a reply like `complete`. It is shown in one piece if it was stored or the model cannot stream.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
            on_text: Called with each piece of the text.
        """
        streams = hasattr(self.model, "stream")
        reply = await (self._stream(messages, sampling, on_text) if streams else self.complete(messages, sampling))
        if reply.cached or not streams:
            on_text(reply.text)
        return reply

    async def _reply(self, send: Send, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return the stored reply, or the model's."""
        resolve = getattr(self.model, "resolve", None)
        if resolve:
            await resolve()  # "the first model on offer" may be another one tomorrow
        identity = getattr(self.model, "cache_identity", None)  # for models whose name does not identify them
        key = request_key(await identity() if callable(identity) else self.model.name, sampling, messages)
        async with self._turns.get().setdefault(key, asyncio.Lock()):
            stored = await asyncio.to_thread(self.store.get, key)
            if stored is not None:
                if (spent := spending.get()) is not None:
                    spent.add_cached(stored)
                return stored
            reply = await send(messages, sampling)
            if not reply.cut_off:
                await asyncio.to_thread(self.store.put, key, replace(reply, note=""))
        return reply

    async def aclose(self) -> None:
        await super().aclose()
        await asyncio.to_thread(self.store.close)


def _sampling_fields(sampling: Sampling) -> dict[str, object]:
    """Return the fields of a sampling, without an empty `extra`, which is not part of older keys."""
    return {key: value for key, value in asdict(sampling).items() if key != "extra" or value}


def request_key(model: str, sampling: Sampling, messages: Sequence[Message]) -> bytes:
    """Return a digest that is equal for equal requests, in any process.

    Args:
        model: Name of the model, `ChatModel.name`.
        sampling: Parameters of the reply; all fields count.
        messages: The conversation; roles and texts count.
    """
    turns = [[message.role, message.content] for message in messages]
    body = json.dumps([VERSION, model, "", _sampling_fields(sampling), turns], sort_keys=True)
    return hashlib.sha256(body.encode()).digest()
