"""Corpora released for research, by name: their downloads, and the needs of their indexes.

`wiki-18` is the corpus of Search-R1 and of the PyRAG paper: Wikipedia of December 2018 in 21,015,324 passages of 100
words, with vectors of E5 (768 numbers each) in a flat FAISS index of two files. `wiki-fixed` is a repaired copy (arXiv
2605.27881), since wiki-18 lacks evidence for the multi-hop sets. Results over the two cannot be compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyrag._io.hub import HUB, Remote, fetch, files_of, size_of
from pyrag.errors import DataError, UsageError, nearest

VECTORS = "vectors.faiss"


@dataclass(frozen=True, slots=True)
class Release:
    """Released corpus, with or without vectors.

    Attributes:
        corpus: File of the corpus; without a name, it is the repository's only file of records.
        vectors: Parts of a flat FAISS index; empty if no vectors were released.
        model: Model that embedded the passages, and embeds queries.
        passages: Number of passages; 0 if unknown.
        dimension: Numbers in a vector.
    """

    corpus: Remote
    vectors: tuple[Remote, ...]
    model: str
    passages: int = 0
    dimension: int = 768


RELEASES = {
    "wiki-18": Release(
        Remote("PeterJinGo/wiki-18-corpus", "wiki-18.jsonl.gz"),
        tuple(Remote("PeterJinGo/wiki-18-e5-index", part) for part in ("part_aa", "part_ab")),
        "intfloat/e5-base-v2",
        passages=21_015_324,
    ),
    # The names of its files are not documented, so they are looked up on the hub; vectors are not documented either.
    "wiki-fixed": Release(Remote("ybyby624/wiki-fixed", ""), (), "intfloat/e5-base-v2"),
}
_RECORDS = (".jsonl", ".jsonl.gz")


def release_of(name: str, source: str = HUB) -> Release:
    """Return a release. If only the repository is known, look up the file of the corpus.

    Args:
        name: Name of the release, such as "wiki-18".
        source: URL of a hub, or a folder that mirrors it.

    Raises:
        UsageError: No release has this name.
        DataError: The repository holds no file of records, or several.
    """
    if name not in RELEASES:
        raise UsageError(f"there is no corpus {name!r} to fetch{nearest(name, RELEASES)}")
    release = RELEASES[name]
    if release.corpus.file:
        return release
    repository = release.corpus.repository
    files = [file for file in files_of(repository, source) if file.endswith(_RECORDS)]
    if len(files) != 1:
        raise DataError(
            f"{repository} holds {len(files)} files of records ({', '.join(files[:5])}), not one: download the right "
            "one, and index it with pyrag index FILE"
        )
    return replace(release, corpus=Remote(repository, files[0]))


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources needed to fetch and index a release.

    Attributes:
        downloads: Size of each file in bytes; None if the source does not report it.
        disk: Bytes of the finished index, without the downloads; 0 if unknown.
        memory: Bytes of vectors that searches touch; 0 without vectors or if unknown.
    """

    downloads: dict[str, int | None]
    disk: int = 0
    memory: int = 0

    def sentences(self) -> list[str]:
        """Return sentences to print before a download."""
        sizes = [size for size in self.downloads.values() if size is not None]
        files = ", ".join(f"{name} {_gigabytes(size)}" for name, size in self.downloads.items())
        minutes = max(1, round(sum(sizes) / _BYTES_PER_SECOND / 60))
        lines = [f"to download: {files}; at 100 MB/s this takes about {minutes} min"]
        if self.disk:
            lines.append(f"disk for the index, about: {_gigabytes(self.disk)}; the downloads may be deleted afterwards")
        if self.memory:
            lines.append(f"memory for searches, about: {_gigabytes(self.memory)}")
        return lines


_BYTES_PER_SECOND = 100_000_000
# Measured on the 9,790 passages of HotpotQA (531 and 191), scaled to the length of wiki-18's.
_PASSAGE_BYTES = 576
_WORDS_BYTES = 207


def needs_of(release: Release, source: str, *, vectors: bool, exact: bool, words: bool) -> Needs:
    """Return the resources that a release needs, with sizes of downloads from the source.

    Args:
        release: The release.
        source: URL of a hub, or a folder that mirrors it.
        vectors: Whether its vectors are indexed.
        exact: Whether vectors are exact, with 4 bytes per number, rather than about one byte per number.
        words: Whether words are indexed.
    """
    remotes = (release.corpus, *(release.vectors if vectors else ()))
    downloads = {remote.file: size_of(remote, source) for remote in remotes}
    memory = release.passages * release.dimension * (4 if exact else 1) if vectors else 0
    stored = release.passages * release.dimension * 2 if vectors else 0  # float16, to rebuild shards
    text = release.passages * (_PASSAGE_BYTES + (_WORDS_BYTES if words else 0))
    return Needs(downloads, memory + stored + text, memory)


def _gigabytes(size: int | None) -> str:
    return "of unknown size" if size is None else f"{size / 1e9:.1f} GB"


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
    """Download the parts of the vectors into one file, resuming an interrupted download.

    Args:
        release: The release.
        folder: Folder to write. Each part is deleted from it after it is appended.
        source: Hub, or a folder that mirrors it.
        say: Called with a sentence before each download.

    Returns:
        Path of the vectors.
    """
    target = folder / VECTORS
    if target.exists():
        return target
    partial = next(folder.glob(f"{VECTORS}.*-*"), None) or folder / f"{VECTORS}.0-0"
    partial.touch()
    for number in range(_counts(partial)[0], len(release.vectors)):
        say(f"fetching {release.vectors[number].file}, part {number + 1} of {len(release.vectors)} of the vectors")
        part = fetch(release.vectors[number], source, folder)
        partial = _appended(partial, part)
        if part.parent.samefile(folder):  # not in a mirror
            part.unlink()
    return partial.rename(target)


def _counts(partial: Path) -> tuple[int, int]:
    """Return the numbers of complete parts and bytes. An interrupted download may have written more bytes."""
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
