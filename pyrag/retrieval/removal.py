"""Removal of files and folders from an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyrag.errors import DataError
from pyrag.retrieval.index import Built, language_of, open_generation, published, read_info, sources_of, write_errors
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.record_database import Records
from pyrag.retrieval.indexing.sources import IndexSource, WantedSources, is_below, located
from pyrag.retrieval.sent import FOLDER, delete_sent

if TYPE_CHECKING:
    from pyrag.retrieval.indexing.part_protocol import Part


def _ignore(*_: object) -> None:
    pass


def remove_from_index(
    out: str | Path,
    paths: Iterable[str | Path],
    *,
    parts: tuple[Part, ...] = (),
    on_wait: Callable[[], None] = _ignore,
) -> Built:
    """Remove files and folders from an index, and change nothing else. Later updates skip them.

    Documents sent over HTTP are deleted, since no update could read them again.

    Args:
        out: Folder of the index.
        paths: Files and folders, which need not exist any more, or their names in the index.
        parts: Parts of the index; by default only BM25.
        on_wait: Called before waiting for another build of the same folder.

    Raises:
        DataError: The folder is not an index of this version, or a path is not in it.
        PyRAGError: The index cannot be written.
    """
    from pyrag.retrieval.indexing.build import Build, BuildOptions, check_base, columns_of
    from pyrag.retrieval.indexing.staging import staging_lock

    read_info(out)  # check the folder before anything is created beside it
    target = Path(os.path.realpath(out))
    with write_errors(Path(out)), staging_lock(target, on_wait) as work:
        before = read_info(out)
        base = target / before.generation
        options = BuildOptions(
            parts=parts or (Bm25Part(language=language_of(out)),), columns=columns_of(base), resume=False
        )
        check_base(options, base, Path(out))
        removal = Removal.of(paths, open_generation(out, _names), sources_of(before), Path(out))
        outcome = Build(work, options, _ignore).run(
            lambda update: update.remove(removal.names.__contains__, removal.located), base
        )
        built = published(work, target, options, before, outcome, removal.wanted(before.excluded, target / FOLDER))
        delete_sent(target, (os.path.realpath(removal.located(name)[0]) for name in removal.names))
        return built


def indexed_files(path: str | Path) -> list[tuple[str, int]]:
    """Return the files of an index by name, with their numbers of passages.

    Raises:
        DataError: The folder is not an index that this version of pyrag can read.
    """
    return open_generation(path, _listed_files)


def _listed_files(generation: Path) -> list[tuple[str, int]]:
    with closing(Records(generation)) as records:
        return list(records.counted_files())


def _names(generation: Path) -> list[str]:
    with closing(Records(generation)) as records:
        return [file.name for file in records.files()]


@dataclass(frozen=True, slots=True)
class Removal:
    """Files and folders to remove from an index.

    Attributes:
        names: Names of the files in the index.
        places: Real paths of the files and folders that the user named.
        sources: Sources of the index before the removal.
    """

    names: frozenset[str]
    places: tuple[str, ...]
    sources: tuple[IndexSource, ...]

    @classmethod
    def of(
        cls, paths: Iterable[str | Path], files: Sequence[str], sources: Sequence[IndexSource], out: Path
    ) -> Removal:
        """Return the removal of some files and folders.

        Args:
            paths: Files and folders that the user named.
            files: Names of the files of the index.
            sources: Sources of the index.
            out: Folder of the index, for messages.

        Raises:
            DataError: A path is not in the index.
        """
        real = {name: _real(name, sources) for name in files}
        names_by_place: dict[str, set[str]] = {}
        for path in paths:
            choices = (_real_path(str(path)), _real(str(Path(path)), sources))
            place = next((choice for choice in choices if _held(choice, real, sources)), None)
            if place is None:
                raise DataError(f"{path} is not in the index {out}: pyrag index list {out} shows what is")
            names_by_place[place] = {name for name, real_path in real.items() if _is_in(real_path, place)}
        return cls(frozenset().union(*names_by_place.values()), tuple(names_by_place), tuple(sources))

    def located(self, name: str) -> tuple[Path, str]:
        """Return the path of a file by its name in the index, and its name in an archive."""
        return located(name, self.sources)

    def wanted(self, excluded: Sequence[str], sent: Path) -> WantedSources:
        """Return the sources for later updates.

        Args:
            excluded: Real paths that were removed earlier.
            sent: Folder of documents sent over HTTP, which can be sent again after their removal.
        """
        remaining = tuple(
            source for source in self.sources if not any(_is_in(source.place, place) for place in self.places)
        )
        removed = [path for path in dict.fromkeys((*excluded, *self.places)) if not is_below(path, str(sent))]
        return WantedSources(
            remaining, tuple(path for path in removed if any(_is_in(path, its.place) for its in remaining)), True
        )


def _held(place: str, real: dict[str, str], sources: Sequence[IndexSource]) -> bool:
    return any(_is_in(path, place) for path in (*real.values(), *(source.place for source in sources)))


def _is_in(path: str, place: str) -> bool:
    """Return whether a path is a file, or is inside a folder or an archive."""
    return is_below(path, place) or path.startswith(f"{place}!/")


def _real(name: str, sources: Sequence[IndexSource]) -> str:
    """Return the real path of a file by its name in the index."""
    path, member = located(name, sources)
    return f"{os.path.realpath(path)}!/{member}" if member else os.path.realpath(path)


def _real_path(path: str) -> str:
    """Return the real path of a file that the user named, including a file in an archive."""
    outer, mark, member = path.partition("!/")
    return os.path.realpath(outer) + mark + member
