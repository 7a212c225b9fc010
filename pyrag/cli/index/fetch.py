"""`pyrag index fetch`: download and index a released corpus."""

from __future__ import annotations

import sys
from pathlib import Path

from pyrag.cli.index.run import Vectors, build_parts, made_before
from pyrag.retrieval.indexing.releases import fetch_corpus, fetch_vectors, release_of


def fetch(name: str, out: Path, files: Path, *, source: str, vectors: Vectors | None, as_json: bool) -> None:
    """Download a corpus, and index it.

    Args:
        name: The release, such as "wiki-18".
        out: Folder of the index.
        files: Folder to download to.
        source: URL of a hub, or a folder that mirrors one.
        vectors: Layout of the release's vectors; None leaves them out.
        as_json: Print the result as one JSON line.
    """
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
