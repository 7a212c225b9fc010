"""The pgvector store: its statements everywhere, and its searches where a server can be had: `make test-pgvector`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import ConfigError, ServiceError
from pyrag.retrieval import open_retriever
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.tree import Comparison, Containment, Existence, Filter, Membership
from pyrag.retrieval.hybrid import fuse
from pyrag.retrieval.open import Options
from pyrag.retrieval.protocol import searched_index
from pyrag.retrieval.stores import pgvector_statements as statements
from pyrag.retrieval.stores.pgvector import PgvectorStore
from pyrag.retrieval.stores.pgvector_filters import condition_of, encoded_facts, encoded_value
from pyrag.retrieval.stores.store import StoreRetriever
from pyrag.testing import STORE_CHECKS, StoreCase, assert_all
from pyrag.trace.model import Passage

from .embedders import words_embedder
from .postgres import needs_postgres, new_spec, pgvector_of, postgres_url, store_of
from .test_filters import filters

CAST = r"::(?:text\[\]::jsonb\[\]|text|jsonb)"
WORD = r"\b(?:facts|jsonb_typeof|COLLATE|AND|OR|NOT|ANY|true)\b"
FIXED = re.compile(rf"""[\s()]|%s|{CAST}|{WORD}|"C"|->>|->|@>|\?|<>|<=|>=|[<>=]""")


@given(filters)
def test_conditions_are_constants_and_placeholders(where: Filter) -> None:
    condition = condition_of(where)
    assert FIXED.sub("", condition.text) == ""
    assert condition.text.count("%s") == len(condition.values)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)))
def test_facts_are_json_of_exact_numbers(metadata: dict[str, Any]) -> None:
    held = json.loads(encoded_facts(metadata), parse_int=float, parse_float=float)
    assert len(held) == len(metadata)
    assert [one for one in held.values() if isinstance(one, float)] == [
        float(one) for one in metadata.values() if not isinstance(one, str)
    ]
    assert "\0" not in encoded_facts(metadata)
    assert "\\u0000" not in encoded_facts(metadata)


@given(st.text("\0\1\2a"), st.text("\0\1\2a"))
def test_escaped_texts_keep_their_order(left: str, right: str) -> None:
    escaped = [json.loads(encoded_value(one)) for one in (left, right)]
    assert (escaped[0] < escaped[1]) == (left < right)
    assert (escaped[0] == escaped[1]) == (left == right)


@pytest.fixture
def store() -> Iterator[PgvectorStore]:
    made = PgvectorStore(new_spec())
    yield made
    made.close()


@needs_postgres
async def test_the_pgvector_store_passes_the_shipped_checks() -> None:
    await assert_all(STORE_CHECKS, StoreCase(lambda: PgvectorStore(new_spec()), lambda store: store.close()))  # type: ignore[attr-defined]


NAMES = ["team", "x') OR true --", "%s", "a'b\"c", "\0", "\1", "{}", "Ünï"]
HELD: list[Any] = [
    "a",
    "a\0",
    "a\1",
    "a\2",
    "b",
    "B",
    "é",
    "",
    "%s",
    "'; DROP TABLE x; --",
    0.1,
    1e300,
    -5e-324,
    0,
    1 << 62,
]


@needs_postgres
async def test_any_name_and_value_is_compared_exactly() -> None:
    passages = [
        Passage(f"{name}:{at}", "", "mill", metadata={name: value}) for name in NAMES for at, value in enumerate(HELD)
    ]
    passages.append(Passage("list", "", "mill", metadata={"team": ["a\0", 0.1, True]}))
    retriever = await pgvector_of(passages, 1.0)
    asked: list[Filter] = [Comparison("team", sign, value) for sign, value in product(("=", "!=", "<", ">="), HELD)]
    asked += [Membership(NAMES[1], ("a", "a\0"), inside) for inside in (True, False)]
    asked += [Containment("team", value, inside) for inside in (True, False) for value in ("a\0", 0.1, 1, True)]
    asked += [Existence(name, present) for name in NAMES for present in (True, False)]
    for where in asked:
        found = {one.id for one in await retriever.retrieve("mill", 1000, where)}
        assert found == {one.id for one in passages if where.matches(one.metadata)}, where
    await retriever.aclose()


@needs_postgres
async def test_words_and_vectors_are_fused_by_rank() -> None:
    texts = ["mill otter river", "mill", "otter otter", "stone river", "zebra"]
    passages = [Passage(f"p{at}", "", text) for at, text in enumerate(texts)]
    store = store_of(await pgvector_of(passages, 0.5))
    query = "otter river"
    (vector,) = await words_embedder().embed_queries([query])
    dense, sparse = (store.search(vector, 5, query, weight) for weight in (1.0, 0.0))
    assert {part for one in sparse for part in one.parts} == {"sparse"}
    assert [one.id for one in sparse][:1] == ["p0"]
    assert {one.id for one in sparse} == {"p0", "p2", "p3"}
    ours = fuse({"dense": dense, "sparse": sparse}, {"dense": 0.25, "sparse": 0.75})
    assert store.search(vector, 5, query, 0.25) == ours
    store.close()


def filled(store: PgvectorStore, rows: int) -> Any:
    vectors = np.random.default_rng(0).normal(size=(rows, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.create(Fingerprint(model="m", dimension=16))
    store.add([Passage(f"p{row}", "", "", metadata={"row": row}) for row in range(rows)], vectors)
    return vectors


@needs_postgres
@pytest.mark.parametrize("passing", [3, 150, 1500])
async def test_a_graph_finds_what_passes_a_filter(passing: int) -> None:
    store = PgvectorStore(f"{new_spec()}&options=-c%20enable_seqscan%3Doff")  # as it is for a large table
    vectors = filled(store, 2000)
    store.optimise()
    store.optimise()
    assert f"{store._key}_graph" in plan_of(store)
    query = np.random.default_rng(1).normal(size=16).astype(np.float32)
    best = [f"p{row}" for row in np.argsort(-(vectors[:passing] @ query), kind="stable")[:120]]
    where = parsed(f"row < {passing}")
    found = store.search_all([filtered_query(query, 120, where)], 1.0)[0]
    assert len(found) == len(best)
    assert len({one.id for one in found} & set(best)) >= 0.9 * len(best)
    assert all(where.matches(one.metadata) for one in found)
    store.close()


def plan_of(store: PgvectorStore) -> str:
    """Return PostgreSQL's plan of a search without a filter."""
    import psycopg

    vector = f"[{','.join('1' * 16)}]"
    with store._connection("read") as connection, connection.transaction():
        connection.execute(statements.SCAN_ON)
        statement = psycopg.sql.SQL("EXPLAIN ") + store._composed(statements.NEAREST)
        return "\n".join(row[0] for row in connection.execute(statement, (vector, vector, 10)))


def filtered_query(vector: Any, topk: int, where: Filter) -> Any:
    from pyrag.retrieval.dense import DenseQuery

    return DenseQuery.filtered("", topk, vector, where)


@needs_postgres
async def test_a_spec_opens_what_was_stored() -> None:
    from pyrag.retrieval.embedders.embedding import open_embedder

    spec, embedder = new_spec(), open_embedder("bundled")
    store = PgvectorStore(spec)
    store.create(await embedder.fingerprint())
    passages = [Passage("1", "Mill", "A mill grinds grain.", metadata={"team": "ops"}), Passage("2", "Zoo", "Zebras.")]
    await store.add_passages(passages, embedder)
    store.close()
    retriever = open_retriever(spec, options=Options(embedder="bundled"))
    (best, *_) = await retriever.retrieve("Who grinds grain?", 2)
    assert replace(best, score=0.0, parts={}) == passages[0]
    assert (retriever.name.partition("_")[0], searched_index(retriever).kind) == ("pgvector:passages", "pgvector")
    assert "host=" not in retriever.name
    await retriever.aclose()
    with pytest.raises(ConfigError, match="needs the embedder of its vectors"):
        open_retriever(spec)


@needs_postgres
async def test_a_search_needs_the_right_to_read_alone() -> None:
    import psycopg

    written = store_of(await pgvector_of([Passage("1", "", "mill", metadata={"team": "ops"})], 1.0))
    written.close()
    reader = f"reader_{written.name.partition('@')[0].rpartition('_')[2]}"
    with psycopg.connect(postgres_url()) as connection:
        connection.execute(f"CREATE ROLE {reader} LOGIN")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}")
    spec = f"{written.name.partition('@')[0]}@{postgres_url().replace('tester', reader)}"
    retriever = StoreRetriever(PgvectorStore(spec), words_embedder())
    for where, found in ((None, ["1"]), (parsed("team = 'ops'"), ["1"]), (parsed("team = 'hr'"), [])):
        assert [one.id for one in await retriever.retrieve("mill", 5, where)] == found
    with pytest.raises(ServiceError, match=r"cannot be written .*permission denied"):
        PgvectorStore(spec).delete(["1"])
    await retriever.aclose()


@needs_postgres
def test_a_table_is_made_once_by_many(store: PgvectorStore) -> None:
    failures: list[Exception] = []

    def create() -> None:
        try:
            store.create(Fingerprint(model="m", dimension=4))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failures, len(store)) == ([], 0)


@needs_postgres
async def test_a_table_without_a_column_is_refused() -> None:
    retriever = await pgvector_of([Passage("a", "", "mill otter", source="a.md")], 0.5)
    store, embedder = store_of(retriever), words_embedder()
    with store._connection("changed") as connection:
        connection.execute(store._composed("ALTER TABLE {table} DROP COLUMN document"))
    assert [passage.id for passage in await retriever.retrieve("mill", 1)] == ["a"]
    needed = "lacks a column that this version of pyrag needs: index into a table of another name"
    with pytest.raises(ConfigError, match=needed):
        await store.add_passages([Passage("b", "", "zebra", source="b.md")], embedder)
    with pytest.raises(ConfigError, match=needed):
        await retriever.document_passages("a.md", None)
    assert [passage.id for passage in await retriever.retrieve("zebra mill", 2)] == ["a"]
    await retriever.aclose()


@needs_postgres
async def test_a_store_that_cannot_be_used_is_one_sentence() -> None:
    empty = StoreRetriever(PgvectorStore(new_spec()), words_embedder())
    with pytest.raises(ConfigError, match="holds no passages of pyrag: index some into it first"):
        await empty.retrieve("x", 1)
    await empty.aclose()
    away = PgvectorStore("pgvector:a@postgresql://bob:hunter2@/postgres?host=/nowhere")
    with pytest.raises(ServiceError, match=r"cannot be read .*look whether it runs") as raised:
        away.check(Fingerprint(model="m", dimension=4))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "spec", ["pgvector:", "pgvector:a", "pgvector:@postgresql://h/d", "pgvector:a@http://h/d", "pgvector:a@postgres:h"]
)
def test_a_spec_without_table_or_address_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        PgvectorStore(spec)


@pytest.mark.parametrize("table", ['a"b', "a b", "A", "a.b.c", "1a", "a;drop", "x" * 49, "a.", "é"])
def test_names_of_tables_are_checked(table: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a table"):
        PgvectorStore(f"pgvector:{table}@postgresql://h/d")
