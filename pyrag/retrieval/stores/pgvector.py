"""Store of passages and their vectors in PostgreSQL with the extension pgvector (0.8 and newer).

    pgvector:TABLE@postgresql://USER@HOST:5432/DATABASE    (extra `pgvector`)

A row holds a passage as JSON, the facts that filters test (`pgvector_filters`), a vector, and BM25's terms with their
weights (`sparse`). Inverse document frequencies are computed per query. A hybrid query fuses both lists by reciprocal
rank, like an index folder. The table `pyrag_fingerprints` stores the embedder's fingerprint, so that queries embedded
by a different model are refused. Vectors are compared one by one until `optimise` builds a graph (HNSW). Values are
passed as parameters; names of tables are checked and quoted. The database manages partitions, replicas and roles.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, Full, LifoQueue
from typing import TYPE_CHECKING, Any

import msgspec

from pyrag._io.redaction import without_secrets
from pyrag._io.specs import parse_spec
from pyrag.errors import ConfigError, install_extra
from pyrag.retrieval.catalogue.scanned import DocumentKey, document_key
from pyrag.retrieval.dense import PART, DenseQuery
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.hybrid import DEPTH, fuse
from pyrag.retrieval.protocol import best_first
from pyrag.retrieval.stores import pgvector_statements as statements
from pyrag.retrieval.stores.pgvector_filters import condition_of, encoded_facts
from pyrag.retrieval.stores.sparse import passage_terms, query_terms
from pyrag.retrieval.stores.store import Store, passage_of, payload_of, refuse_difference, store_errors
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_BATCH = 256
_SCANNED = 2_000  # rows that a scan fetches at once
_MAX_IDLE = 8  # open connections for later calls
_SPARSE = "sparse"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")


class PgvectorStore(Store):
    """Store of passages in a table of PostgreSQL, by id.

    Methods raise `ServiceError` if the server cannot be used, and `ConfigError` if the table cannot.
    """

    kind = "pgvector"

    def __init__(self, spec: str, *, timeout: float = 10.0) -> None:
        self._spec = without_secrets(spec)
        table, self._url = parse_spec(spec).at_place
        if not self._url.startswith(("postgres://", "postgresql://")):
            raise ConfigError(f"{self._spec!r} names no table: write pgvector:TABLE@postgresql://HOST/DATABASE")
        self._table = tuple(table.split("."))
        if len(self._table) > 2 or not all(map(_NAME.fullmatch, self._table)):
            raise ConfigError(
                f"{table!r} cannot be the name of a table: write TABLE or SCHEMA.TABLE, each of at most 48 lower-case "
                "letters, digits and underscores"
            )
        self._timeout = timeout
        self._idle: LifoQueue[Any] = LifoQueue(_MAX_IDLE)
        self._driver: Any = _driver()

    @property
    def name(self) -> str:
        return self._spec

    def create(self, fingerprint: Fingerprint) -> None:
        """Create the table, or check that the existing one has the same fingerprint."""
        with self._connection("created") as connection, connection.transaction():
            connection.execute(statements.LOCK)
            connection.execute(statements.EXTENSION)
            self._check_version(connection)
            connection.execute(self._composed(statements.FINGERPRINTS))
            about = self._about(connection)
            if about is None:
                connection.execute(self._composed(statements.TABLE, dimension=fingerprint.dimension))
                connection.execute(self._composed(statements.TERMS_INDEX))
                row = (self._key, msgspec.json.encode(fingerprint).decode())
                connection.execute(self._composed(statements.REMEMBER), row)
                connection.execute(self._composed(statements.DOCUMENT_INDEX))
        if about is not None:
            refuse_difference(self._spec, about, fingerprint)

    def check(self, fingerprint: Fingerprint) -> None:
        with self._connection("read") as connection:
            known = connection.execute("SELECT to_regclass(%s)", (".".join(self._names("pyrag_fingerprints")),))
            about = None if known.fetchone()[0] is None else self._about(connection)
        if about is None:
            raise ConfigError(f"{self._spec} holds no passages of pyrag: index some into it first")
        refuse_difference(self._spec, about, fingerprint)

    def add(self, passages: Sequence[Passage], vectors: Matrix) -> None:
        """Write passages; passages with an existing id are replaced.

        Args:
            passages: Passages to write.
            vectors: Array of float32 of shape (passages, dimension).

        Raises:
            ConfigError: The table lacks a column, as another version of pyrag made it.
        """
        rows = [_row(passage, vector) for passage, vector in zip(passages, vectors.tolist(), strict=True)]
        with self._connection("written") as connection, connection.transaction(), connection.cursor() as cursor:
            for start in range(0, len(rows), _BATCH):
                cursor.executemany(self._composed(statements.UPSERT), rows[start : start + _BATCH])

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages; unknown ids are ignored."""
        with self._connection("written") as connection:
            connection.execute(self._composed(statements.DELETE), ([_key(key) for key in ids],))

    def search_all(self, asked: Sequence[DenseQuery], dense_weight: float = 0.5) -> list[list[Passage]]:
        """Return the best passages for each query, over one connection.

        Args:
            asked: Queries with their vectors.
            dense_weight: Weight of the vectors, from 0 to 1.
        """
        with self._connection("searched") as connection:
            return [self._search(connection, query, dense_weight) for query in asked]

    def _search(self, connection: Any, asked: DenseQuery, dense_weight: float) -> list[Passage]:
        terms = query_terms(asked.query) if dense_weight < 1 and asked.query else {}
        near = asked.vector is not None and (dense_weight > 0 or not terms)
        if not (near and terms):
            passages = (
                self._near(connection, asked, asked.topk) if near else self._worded(connection, asked, asked.topk)
            )
        else:
            depth = max(DEPTH, asked.topk)
            lists = {_SPARSE: self._worded(connection, asked, depth), PART: self._near(connection, asked, depth)}
            return fuse(lists, {PART: dense_weight, _SPARSE: 1 - dense_weight})[: asked.topk]
        return sorted(passages, key=best_first)[: asked.topk]

    def _near(self, connection: Any, asked: DenseQuery, limit: int) -> list[Passage]:
        """Return the nearest passages. If a graph finds too few that pass a filter, all vectors are compared."""
        condition = condition_of(asked.filter)
        statement = self._composed(statements.NEAREST, condition=condition.text)
        vector = _vector(asked.vector.tolist())
        values = (vector, *condition.values, vector, limit)
        with connection.transaction():
            connection.execute(statements.SCAN_ON)
            rows = connection.execute(statement, values).fetchall()
            if asked.filter is not None and len(rows) < limit:
                connection.execute(statements.WITHOUT_GRAPH)
                rows = connection.execute(statement, values).fetchall()
        return [passage_of(payload, score, PART) for payload, score in rows]

    def _worded(self, connection: Any, asked: DenseQuery, limit: int) -> list[Passage]:
        """Return the best passages by BM25. Frequencies are counted over all passages, regardless of the filter."""
        terms, condition = query_terms(asked.query), condition_of(asked.filter)
        statement = self._composed(statements.WORDED, condition=condition.text)
        values = (list(terms), list(terms.values()), list(terms), *condition.values, limit)
        rows = connection.execute(statement, values).fetchall() if terms else []
        return [passage_of(payload, score, _SPARSE) for payload, score in rows]

    def scan(self, where: Filter | None) -> Iterator[Passage]:
        """Yield all passages that a filter passes, using a server-side cursor."""
        return self._scan(statements.SCAN, (), where)

    def scan_documents(self, keys: Sequence[DocumentKey], where: Filter | None) -> Iterator[Passage]:
        """Yield the passages of documents, by an index.

        Args:
            keys: Keys of documents. Each is a file or the id of a passage.
            where: Filter of passages. None for no filter.
        """
        values = ([_key(passage_id) for file, passage_id in keys if not file], [_key(file) for file, _ in keys if file])
        return self._scan(statements.SCAN_DOCUMENTS, values, where)

    def _scan(self, scanning: str, values: tuple[object, ...], where: Filter | None) -> Iterator[Passage]:
        condition = condition_of(where)
        statement = self._composed(scanning, condition=condition.text)
        with self._connection("read") as connection, connection.transaction():
            connection.execute(statements.WITHOUT_LIMIT)
            with connection.cursor(name="pyrag_scan") as cursor:
                cursor.itersize = _SCANNED
                cursor.execute(statement, (*values, *condition.values))
                for (payload,) in cursor:
                    yield passage_of(payload, 0.0, PART)

    def optimise(self) -> None:
        """Build the graph of vectors for later searches. Passages that are added later are added to the graph."""
        with self._connection("optimised") as connection, connection.transaction():
            connection.execute(statements.WITHOUT_LIMIT)
            connection.execute(self._composed(statements.GRAPH))

    def __len__(self) -> int:
        with self._connection("read") as connection:
            return int(connection.execute(self._composed(statements.COUNT)).fetchone()[0])

    def close(self) -> None:
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    @contextmanager
    def _connection(self, doing: str) -> Iterator[Any]:
        """Yield a connection for this call, and keep it for later calls if it is still usable."""
        with store_errors(self._spec, doing):
            connection = self._connected()
            try:
                yield connection
            except self._driver.errors.UndefinedColumn as error:
                connection.close()
                raise ConfigError(
                    f"{self._spec} lacks a column that this version of pyrag needs: index into a table of another name"
                ) from error
            except BaseException:
                connection.close()
                raise
            try:
                self._idle.put_nowait(connection)
            except Full:
                connection.close()

    def _connected(self) -> Any:
        try:
            return self._idle.get_nowait()
        except Empty:
            seconds = max(1, round(self._timeout))
            connection = self._driver.connect(self._url, autocommit=True, connect_timeout=max(2, seconds))
            connection.execute("SELECT set_config('statement_timeout', %s, false)", (f"{seconds}s",))
            return connection

    def _check_version(self, connection: Any) -> None:
        (version,) = connection.execute(statements.VERSION).fetchone()
        if tuple(map(int, version.split(".")[:2])) < statements.MIN_VERSION:
            raise ConfigError(
                f"{self._spec} has pgvector {version}: install 0.8 or newer and run ALTER EXTENSION vector UPDATE"
            )

    def _about(self, connection: Any) -> Fingerprint | None:
        row = connection.execute(self._composed(statements.ABOUT), (self._key,)).fetchone()
        return None if row is None else msgspec.convert(row[0], Fingerprint)

    @property
    def _key(self) -> str:
        return str(self._table[-1])

    def _names(self, table: str) -> tuple[str, ...]:
        """Return the name of a table in the same schema."""
        return (*self._table[:-1], table)

    def _composed(self, statement: str, *, dimension: int = 0, condition: str = "true") -> Any:
        """Return a statement with quoted names. `condition` consists of constants and placeholders."""
        sql = self._driver.sql
        return sql.SQL(statement).format(
            table=sql.Identifier(*self._table),
            fingerprints=sql.Identifier(*self._names("pyrag_fingerprints")),
            document_index=sql.Identifier(f"{self._key}_document"),
            terms_index=sql.Identifier(f"{self._key}_terms"),
            graph=sql.Identifier(f"{self._key}_graph"),
            dimension=sql.Literal(dimension),
            condition=sql.SQL(condition),
        )


def _driver() -> Any:
    try:
        import psycopg
        import psycopg.sql
    except ImportError as error:
        raise ConfigError(f"pgvector needs psycopg: {install_extra('pgvector')}") from error
    return psycopg


def _row(passage: Passage, vector: list[float]) -> tuple[Any, ...]:
    terms = passage_terms(passage.title, passage.text)
    payload = msgspec.json.encode(payload_of(passage)).decode()
    return (
        _key(passage.id),
        payload,
        encoded_facts(passage.metadata),
        _vector(vector),
        list(terms),
        list(terms.values()),
        _key(document_key(passage)[0]),
    )


def _key(passage_id: str) -> bytes:
    """Return a hash of an id, since an id may contain characters that PostgreSQL does not allow in texts."""
    return hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _vector(values: list[float]) -> str:
    return f"[{','.join(map(repr, values))}]"
