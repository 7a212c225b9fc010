"""A retriever of your own: passages from the full-text index of a SQLite database."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing

from pyrag import Passage, PyRAG

ARTICLES = [
    ("mill", "The mill of Alpha", "The mill of Alpha was founded by Ada Berg in 1887."),
    ("ada", "Ada Berg", "Ada Berg was born in Uppsala on 3 May 1852."),
    ("fire", "The fire", "The fire of 1931 was reported by the watchman Nils Roth."),
]


class FullText:
    """Search a table of articles, best match first."""

    name = "full-text"

    def __init__(self, path: str) -> None:
        self._path = path

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        # The query is text of a model or a user: only its words go into the search expression.
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        return await asyncio.to_thread(self._search, words, topk) if words and topk > 0 else []

    async def aclose(self) -> None:
        pass  # nothing stays open between searches

    def _search(self, words: str, topk: int) -> list[Passage]:
        statement = "SELECT id, title, text, -bm25(articles) FROM articles WHERE articles MATCH ? ORDER BY rank LIMIT ?"
        # Searches run at the same time, and threads must not share a connection.
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            return [Passage(*row) for row in database.execute(statement, (words, topk))]


def fill(path: str) -> None:
    """Make a small database to try with."""
    database = sqlite3.connect(path)
    database.execute("DROP TABLE IF EXISTS articles")
    database.execute("CREATE VIRTUAL TABLE articles USING fts5(id UNINDEXED, title, text)")
    database.executemany("INSERT INTO articles VALUES (?, ?, ?)", ARTICLES)
    database.commit()
    database.close()


def open_full_text(path: str) -> FullText:
    """Open a database: what an entry point of the group pyrag.retrievers names."""
    return FullText(path)


def ready() -> FullText:
    """Open the database to try with: what the checks of pyrag.testing call."""
    fill("articles.db")
    return open_full_text("articles.db")


if __name__ == "__main__":
    with PyRAG(retriever=ready()) as rag:
        print(rag.ask("Where was the founder of the mill of Alpha born?").answer.text)
