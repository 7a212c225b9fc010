"""`pyrag serve-retriever`: one index for many processes, by the server of `pyrag serve` without questions."""

from __future__ import annotations

import asyncio
from pathlib import Path


def serve(spec: str, host: str, port: int, *, embedder: str | None, rerank: str | None, where: str | None) -> None:
    """Serve an index over HTTP until interrupted.

    Args:
        spec: Index folder, `qdrant:COLLECTION@URL` or `pgvector:TABLE@URL`.
        host: Address to listen on.
        port: Port; 0 picks a free one.
        embedder: Embedder of queries; None for the index's own.
        rerank: Reranker; None for none.
        where: Filter that all passages must pass, whatever a request asks for; None for none.
    """
    from pyrag.retrieval import Options, open_retriever
    from pyrag.retrieval.filters.language import parsed
    from pyrag.server.config import ServerConfig
    from pyrag.server.run import serve_retriever

    folder = Path(spec).expanduser()

    def started(url: str, name: str) -> None:
        print(f"serving {name} at {url}; use it with: pyrag ask --retriever {url} (Ctrl-C ends)", flush=True)

    options = Options(embedder=embedder, rerank=rerank, where=None if where is None else parsed(where))
    config = ServerConfig(host=host, port=port, allow_anonymous=True)  # as Search-R1's clients send no key
    asyncio.run(
        serve_retriever(
            lambda: open_retriever(spec, options=options), folder if folder.is_dir() else None, config, started
        )
    )
