"""Statements of the pgvector store. Braces mark quoted names and checked constants, and `%s` marks values.

`condition` is a condition of `pgvector_filters` over the columns of the store's table.
"""

from __future__ import annotations

MIN_VERSION = (0, 8)  # the first version that scans a graph until enough passages pass a filter

LOCK = "SELECT pg_advisory_xact_lock(8127364551)"  # two processes may create the same tables
EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
FINGERPRINTS = "CREATE TABLE IF NOT EXISTS {fingerprints} (name text PRIMARY KEY, fingerprint json NOT NULL)"
TABLE = """
    CREATE TABLE {table} (
        key bytea PRIMARY KEY,
        passage json NOT NULL,
        facts jsonb NOT NULL,
        embedding vector({dimension}) NOT NULL,
        terms bigint[] NOT NULL,
        weights float8[] NOT NULL,
        document bytea
    )"""
DOCUMENT_INDEX = "CREATE INDEX {document_index} ON {table} (document)"
TERMS_INDEX = "CREATE INDEX {terms_index} ON {table} USING gin (terms)"
GRAPH = "CREATE INDEX IF NOT EXISTS {graph} ON {table} USING hnsw (embedding vector_ip_ops)"
REMEMBER = "INSERT INTO {fingerprints} (name, fingerprint) VALUES (%s, %s)"
ABOUT = "SELECT fingerprint FROM {fingerprints} WHERE name = %s"
SCAN = "SELECT passage FROM {table} WHERE {condition}"
SCAN_DOCUMENTS = "SELECT passage FROM {table} WHERE (key = ANY(%s) OR document = ANY(%s)) AND {condition}"
COUNT = "SELECT count(*) FROM {table}"
DELETE = "DELETE FROM {table} WHERE key = ANY(%s)"
UPSERT = """
    INSERT INTO {table} (key, passage, facts, embedding, terms, weights, document) VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (key) DO UPDATE SET (passage, facts, embedding, terms, weights, document)
        = (excluded.passage, excluded.facts, excluded.embedding, excluded.terms, excluded.weights, excluded.document)"""
# Settings of a transaction.
WITHOUT_LIMIT = "SET LOCAL statement_timeout = 0"
SCAN_ON = "SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = 100"
WITHOUT_GRAPH = "SET LOCAL enable_indexscan = off"
NEAREST = """
    SELECT passage, -(embedding <#> %s::vector) FROM {table} WHERE {condition}
    ORDER BY embedding <#> %s::vector LIMIT %s"""
# The weights are BM25's weights of terms in passages; the inverse document frequency is Lucene's.
WORDED = """
    WITH asked AS (SELECT * FROM unnest(%s::bigint[], %s::float8[]) AS one (term, weight)),
    pairs AS MATERIALIZED (
        SELECT held.key, pair.term, pair.weight
        FROM {table} AS held, unnest(held.terms, held.weights) AS pair (term, weight)
        WHERE held.terms && %s::bigint[] AND pair.term IN (SELECT term FROM asked)
    ),
    rarity AS (
        SELECT term, ln(1 + ((SELECT count(*) FROM {table}) - count(*) + 0.5) / (count(*) + 0.5)) AS idf
        FROM pairs GROUP BY term
    ),
    scored AS (
        SELECT key, sum(pairs.weight * asked.weight * rarity.idf) AS score
        FROM pairs JOIN asked USING (term) JOIN rarity USING (term) GROUP BY key
    )
    SELECT passage, score FROM scored JOIN {table} USING (key) WHERE {condition} ORDER BY score DESC LIMIT %s"""
