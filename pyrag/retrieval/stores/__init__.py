"""Vector stores outside an index folder: Qdrant."""
