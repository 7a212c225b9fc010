"""Catalogues: the documents behind a retriever, counted, listed and opened."""
