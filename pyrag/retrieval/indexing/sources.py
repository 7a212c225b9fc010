"""Sources of an index: the paths that the user named, in any spelling.

A source stores the spelling from its first build, which names its files, and its real path at the last build. Paths are
the same source if their real paths are equal. A relative path is also the same source if its former real path is gone,
for example after a folder was moved together with the index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import fixed_root
from pyrag.retrieval.documents.model import ARCHIVE

_MEMBER = "!/"


@dataclass(frozen=True, slots=True)
class IndexSource:
    """File, folder or pattern that an index was built from.

    Attributes:
        name: Spelling in the first build.
        place: Real path. For a pattern, the real path of the folder before its first wildcard, with the rest.
    """

    name: str
    place: str

    @property
    def path(self) -> Path:
        """Path to read, in its first spelling if this still leads there, so that messages do not change."""
        written_path = Path(self.name)
        return written_path if place_of(written_path) == self.place else Path(self.place)

    @property
    def roots(self) -> tuple[str, str]:
        """Beginning of the names of its files, and of their real paths."""
        return str(fixed_root(Path(self.name))), str(fixed_root(Path(self.place)))


@dataclass(frozen=True, slots=True)
class WantedSources:
    """Sources that an update should index.

    Attributes:
        sources: Files, folders and patterns.
        excluded: Real paths below the sources that were removed from the index.
        may_be_empty: Whether the result may be empty, since the index exists already.
    """

    sources: tuple[IndexSource, ...]
    excluded: tuple[str, ...] = ()
    may_be_empty: bool = False

    @property
    def paths(self) -> list[Path]:
        return [source.path for source in self.sources]

    @property
    def names(self) -> dict[Path, str]:
        """Names of the paths whose spelling differs from their source's name."""
        return {source.path: source.name for source in self.sources if str(source.path) != source.name}

    def excludes(self, path: Path, member: str) -> bool:
        """Return whether a file was removed from the index.

        Args:
            path: Path of the file.
            member: Name of the file in the archive at that path. Empty if it is not in an archive.
        """
        if not self.excluded:
            return False
        real = os.path.realpath(path)
        return any(
            is_below(real, excluded_path) or f"{real}{_MEMBER}{member}" == excluded_path
            for excluded_path in self.excluded
        )


def source_of(path: Path) -> IndexSource:
    return IndexSource(os.fsencode(path).decode("utf-8", "replace"), place_of(path))


def place_of(path: Path) -> str:
    """Return the real path of a file or folder, which need not exist; see `IndexSource` for patterns."""
    root = fixed_root(path)
    rest = path.parts[len(root.parts) :]
    return os.fsencode(Path(os.path.realpath(root), *rest)).decode("utf-8", "replace")


def named_sources(paths: Iterable[Path], known: Sequence[IndexSource]) -> list[IndexSource]:
    """Return the sources that a user names, each once, in the index's spelling.

    Args:
        paths: Paths that the user named.
        known: Sources of the index.
    """
    by_place = {source.place: source for source in known}
    moved_sources = {source.name: source for source in known if not os.path.lexists(fixed_root(Path(source.place)))}
    by_real_path: dict[str, IndexSource] = {}
    for source in map(source_of, paths):
        before = by_place.get(source.place) or moved_sources.get(source.name)
        by_real_path.setdefault(source.place, IndexSource(before.name if before else source.name, source.place))
    return list(by_real_path.values())


def wanted_sources(
    named: Sequence[IndexSource],
    known: Sequence[IndexSource],
    excluded: Sequence[str],
    *,
    add: bool,
    may_be_empty: bool,
) -> WantedSources:
    """Return the sources that an update should index.

    Args:
        named: Sources that the user named. If one of them was removed from the index, it is indexed again.
        known: Sources of the index.
        excluded: Real paths that were removed from the index.
        add: Whether to keep the known sources.
        may_be_empty: Whether the result may be empty.

    Raises:
        DataError: A known source that should be kept does not exist.
    """
    selection = list(named)
    if add:
        names = {source.name for source in named}
        stay = [source for source in known if source.name not in names]
        if gone := [source.name for source in stay if not os.path.lexists(fixed_root(source.path))]:
            raise DataError(f"{gone[0]}, which the index holds, does not exist: remove it with pyrag index remove")
        selection = [*stay, *named]
    again = {source.place for source in named}
    still = tuple(
        path for path in excluded if path not in again and any(is_below(path, its.place) for its in selection)
    )
    return WantedSources(tuple(selection), still, may_be_empty)


def check_dropped(named: Sequence[IndexSource], known: Sequence[IndexSource], out: Path) -> None:
    """Raise `DataError` if an update would replace all sources of an index by unrelated paths.

    Args:
        named: Sources that the user named.
        known: Sources of the index.
        out: Folder of the index.
    """
    names = {source.name for source in known}
    if any(source.name in names for source in named):
        return
    lost = [source.name for source in known if not any(is_below(source.place, other.place) for other in named)]
    if lost:
        new = _listed(source.name for source in named)
        raise DataError(
            f"the index {out} was built from {_listed(names)}, and {new} is not among "
            "them: keep both with --add, put the new files in place of the old ones with --replace, or choose another "
            "--out"
        )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or is inside it.

    Args:
        path: Path without symbolic links.
        folder: Folder without symbolic links.
    """
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def located(name: str, sources: Iterable[IndexSource]) -> tuple[Path, str]:
    """Return the path of a file in an index, and its name in an archive (empty for other files).

    Args:
        name: Name of the file in the index.
        sources: Sources of the index.
    """
    return split_member(locator(sources)(name) or name)


def locator(sources: Iterable[IndexSource]) -> Callable[[str], str | None]:
    """Return a function that returns the real path of a file by its name; None if the file belongs to no source.

    It looks at names only, not at files.
    """
    roots = [source.roots for source in sources]
    return lambda name: next((place for root in roots if (place := _place_below(name, *root)) is not None), None)


def _place_below(name: str, root: str, place: str) -> str | None:
    if root == os.curdir:
        return os.path.join(place, name)  # noqa: PTH118 (a name may hold the mark of an archive)
    rest = name.removeprefix(root)
    fits = not rest or root.endswith(os.sep) or rest.startswith((os.sep, _MEMBER))
    return f"{place}{rest}" if fits and name.startswith(root) else None


def split_member(place: str) -> tuple[Path, str]:
    """Split the real path of a file into the path of its archive and its name in the archive, which may be empty."""
    outer, mark, member = place.partition(_MEMBER)
    return (Path(outer), member) if mark and outer.lower().endswith(ARCHIVE) else (Path(place), "")


def _listed(names: Iterable[str], maximum: int = 3) -> str:
    sorted_names = sorted(names)
    more = f" and {len(sorted_names) - maximum} more" if len(sorted_names) > maximum else ""
    return ", ".join(sorted_names[:maximum]) + more
