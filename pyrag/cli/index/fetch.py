"""`pyrag index fetch`: a released corpus, downloaded and indexed."""

from __future__ import annotations

import sys
from pathlib import Path

from pyrag.cli.index.run import Vectors, build_parts, made_before
from pyrag.retrieval.indexing.releases import fetch_corpus, fetch_vectors, release_of


def fetch(name: str, out: Path, files: Path, *, source: str, vectors: Vectors | None, as_json: bool) -> None:
    """`vectors` says how to keep those of the release; None leaves them out."""
    from pyrag.retrieval.indexing.bm25_part import Bm25Part

    release = release_of(name)
    files.mkdir(parents=True, exist_ok=True)
    corpus = fetch_corpus(release, files, source, _say)
    if vectors is None:
        build_parts([corpus], out, (Bm25Part(),), as_json=as_json)
        return
    from pyrag.retrieval.indexing.stored_vectors import stored_part

    path = fetch_vectors(release, files, source, _say)
    part = stored_part(path, release.model, vectors.layout(made_before(out)[1]))
    try:
        build_parts([corpus], out, (Bm25Part(), part), as_json=as_json)
    finally:
        part.close()


def _say(line: str) -> None:
    print(line, file=sys.stderr)
