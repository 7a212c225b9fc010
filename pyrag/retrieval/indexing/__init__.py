"""Builds and updates of indexes from files. `pyrag.retrieval.index` is the entry point."""
