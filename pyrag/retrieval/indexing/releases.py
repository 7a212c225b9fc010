"""Corpora that were released with their vectors, by name: fetched in full, checked, ready to be indexed.

`wiki-18` is what Search-R1, and so the PyRAG paper, retrieves from: Wikipedia of December 2018 in 21,015,324 passages
of 100 words, with vectors of E5 (768 numbers each) in a flat FAISS index that comes in two parts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.hub import HUB, Remote, fetch
from pyrag.errors import UsageError, nearest

VECTORS = "vectors.faiss"


@dataclass(frozen=True, slots=True)
class Release:
    """`vectors` are the parts of one file; `model` made them, and has to embed queries."""

    corpus: Remote
    vectors: tuple[Remote, ...]
    model: str


RELEASES = {
    "wiki-18": Release(
        Remote("PeterJinGo/wiki-18-corpus", "wiki-18.jsonl.gz"),
        tuple(Remote("PeterJinGo/wiki-18-e5-index", part) for part in ("part_aa", "part_ab")),
        "intfloat/e5-base-v2",
    )
}


def release_of(name: str) -> Release:
    if name not in RELEASES:
        raise UsageError(f"there is no corpus {name!r} to fetch{nearest(name, RELEASES)}")
    return RELEASES[name]


def fetch_corpus(release: Release, folder: Path, source: str = HUB, say: Callable[[str], object] = print) -> Path:
    """Download the corpus of a release.

    Args:
        release: The release.
        folder: Folder to write.
        source: Hub, or a folder that mirrors it.
        say: Called with a sentence before each download.

    Returns:
        Path of the corpus.
    """
    say(f"fetching {release.corpus.file}")
    return fetch(release.corpus, source, folder)


def fetch_vectors(release: Release, folder: Path, source: str = HUB, say: Callable[[str], object] = print) -> Path:
    """Download the parts of the vectors into one file; an interrupted download is resumed.

    Args:
        release: The release.
        folder: Folder to write; each part is deleted from it once it is appended.
        source: Hub, or a folder that mirrors it.
        say: Called with a sentence before each download.

    Returns:
        Path of the vectors.
    """
    whole = folder / VECTORS
    if whole.exists():
        return whole
    partial = next(folder.glob(f"{VECTORS}.*-*"), None) or folder / f"{VECTORS}.0-0"
    partial.touch()
    for number in range(_counts(partial)[0], len(release.vectors)):
        say(f"fetching {release.vectors[number].file}, part {number + 1} of {len(release.vectors)} of the vectors")
        part = fetch(release.vectors[number], source, folder)
        partial = _appended(partial, part)
        if part.parent.samefile(folder):  # and not of a mirror
            part.unlink()
    return partial.rename(whole)


def _counts(partial: Path) -> tuple[int, int]:
    """Return the number of parts, and of bytes, that are complete; bytes beyond them were cut off by a kill."""
    parts, _, size = partial.suffix[1:].partition("-")
    return int(parts), int(size)


def _appended(partial: Path, part: Path) -> Path:
    parts, size = _counts(partial)
    with partial.open("r+b") as file, part.open("rb") as more:
        file.truncate(size)
        file.seek(size)
        shutil.copyfileobj(more, file, 1 << 24)
        size = file.tell()
    return partial.rename(partial.with_suffix(f".{parts + 1}-{size}"))
