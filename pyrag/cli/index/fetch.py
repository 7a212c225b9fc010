"""`pyrag index fetch`: shows what a released corpus needs, downloads it and indexes it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from pyrag.cli.index.work import Vectors, build_parts, made_before, passages_part
from pyrag.cli.output import print_json


def fetch(
    name: str, out: Path, files: Path, *, source: str, vectors: Vectors | None, dry_run: bool, as_json: bool
) -> None:
    """Print what a corpus needs, download it and index it.

    Args:
        name: Name of the release, such as "wiki-18".
        out: Folder of the index.
        files: Folder to download to.
        source: URL of a hub, or a folder that mirrors one.
        vectors: Options of the release's vectors. None to build no vectors.
        dry_run: Only print disk, memory and time.
        as_json: Print the result as one JSON line.

    Raises:
        UsageError: The release is unknown, or has no vectors although the options require them.
    """
    from pyrag.errors import UsageError
    from pyrag.retrieval.indexing.bm25_part import Bm25Part
    from pyrag.retrieval.indexing.releases import fetch_corpus, fetch_vectors, needs_of, release_of
    from pyrag.retrieval.indexing.stored_vectors import stored_part

    release = release_of(name, source)
    if vectors is not None and not release.vectors:
        if vectors.only or vectors.type:
            raise UsageError(
                f"{name} was released without vectors: fetch it with --no-vectors, then embed it with pyrag index "
                f"FILE --out {out} --embedder st:{release.model} --exact --vectors-only"
            )
        vectors = None
    exact = vectors is not None and vectors.type == "Flat"
    words = vectors is None or not vectors.only
    needs = needs_of(release, source, vectors=vectors is not None, exact=exact, words=words)
    for line in needs.sentences():
        _say(line)
    if dry_run:
        if as_json:
            print_json(asdict(needs))
        return
    files.mkdir(parents=True, exist_ok=True)
    corpus = fetch_corpus(release, files, source, _say)
    if vectors is None:
        build_parts([corpus], out, (Bm25Part(),), as_json=as_json, replace=False)
        return
    path = fetch_vectors(release, files, source, _say)
    part = stored_part(path, release.model, vectors.layout(made_before(out)[1]))
    try:
        build_parts([corpus], out, (passages_part(vectors, out), part), as_json=as_json, replace=False)
    finally:
        part.close()


def _say(line: str) -> None:
    print(line, file=sys.stderr)
