"""Vector stores outside an index folder: Qdrant and PostgreSQL with pgvector."""
