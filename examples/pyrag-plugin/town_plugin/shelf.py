"""The retriever `shelf:FILE`: books of a JSON file, {"TITLE": "TEXT"}, found by the words of their texts."""

from __future__ import annotations

import json
from pathlib import Path

from pyrag import Passage


class Shelf:
    """Retriever over books by title."""

    def __init__(self, books: dict[str, str], name: str) -> None:
        self.name = name
        self._books = books

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        """Return the books with the most words of the query.

        Args:
            query: Words to search for.
            topk: Maximum number of books.
        """
        wanted = set(query.lower().rstrip("?").split())
        counts = {title: len(wanted & set(text.lower().split())) for title, text in self._books.items()}
        best = sorted(counts, key=lambda title: -counts[title])[: max(topk, 0)]
        return [Passage(title, title, self._books[title], score=counts[title]) for title in best if counts[title]]

    async def aclose(self) -> None:
        """Do nothing."""


def open_shelf(rest: str) -> Shelf:
    """Return the retriever of the spec `shelf:REST`."""
    return Shelf(json.loads(Path(rest).read_text(encoding="utf-8")), f"shelf:{rest}")
