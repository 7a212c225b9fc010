"""Sources of an index: the paths that the user named, under whatever spelling they are named again.

A source keeps the spelling of its first build, by which its files are called, and the real path that it had at the last
one. Paths are the same source if their real paths are; a relative path also if what it stood for is gone, as when a
folder was moved with the index in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from pyrag.retrieval.documents.find import fixed_root
from pyrag.retrieval.documents.model import ARCHIVE

_MEMBER = "!/"


@dataclass(frozen=True, slots=True)
class IndexSource:
    """A file, folder or pattern of an index.

    Attributes:
        name: spelling of its first build.
        place: real path; of a pattern, that of the folder before its first wildcard, with the rest.
    """

    name: str
    place: str

    @property
    def path(self) -> Path:
        """The path to read: as it was spelled if that still leads there, so that messages stay the same."""
        named = Path(self.name)
        return named if place_of(named) == self.place else Path(self.place)

    def located(self, name: str) -> str | None:
        """Return where a file of this source lies, by its name in the index; None for one of another source."""
        root, place = (str(fixed_root(Path(one))) for one in (self.name, self.place))
        if root == os.curdir:
            return os.path.join(place, name)  # noqa: PTH118 (a name may hold the mark of an archive)
        rest = name.removeprefix(root)
        fits = not rest or root.endswith(os.sep) or rest.startswith((os.sep, _MEMBER))
        return f"{place}{rest}" if fits and name.startswith(root) else None


@dataclass(frozen=True, slots=True)
class WantedSources:
    """Sources that an update is to index.

    Attributes:
        sources: files, folders and patterns.
        excluded: real paths below them that were removed from the index.
        may_be_empty: whether finding nothing is no mistake, since there was something before.
    """

    sources: tuple[IndexSource, ...]
    excluded: tuple[str, ...] = ()
    may_be_empty: bool = False

    @property
    def paths(self) -> list[Path]:
        return [source.path for source in self.sources]

    @property
    def names(self) -> dict[Path, str]:
        """Names of the paths that are read under another one."""
        return {source.path: source.name for source in self.sources if str(source.path) != source.name}

    def excludes(self, path: Path, member: str) -> bool:
        """Return whether a file was removed from the index.

        Args:
            path: Path of the file.
            member: Its name in the archive at that path; empty outside of one.
        """
        if not self.excluded:
            return False
        real = os.path.realpath(path)
        return any(is_below(real, one) or f"{real}{_MEMBER}{member}" == one for one in self.excluded)


def source_of(path: Path) -> IndexSource:
    return IndexSource(os.fsencode(path).decode("utf-8", "replace"), place_of(path))


def place_of(path: Path) -> str:
    """Return the real path of a file or folder, also of one that is not there; see `IndexSource` for patterns."""
    root = fixed_root(path)
    rest = path.parts[len(root.parts) :]
    return os.fsencode(Path(os.path.realpath(root), *rest)).decode("utf-8", "replace")


def known_sources(names: Sequence[str], places: Sequence[str]) -> list[IndexSource]:
    """Return the sources of an index.

    Args:
        names: Their spellings.
        places: Their real paths; empty for an index that was built before these were kept.
    """
    return [
        IndexSource(name, place or place_of(Path(name)))
        for name, place in zip(names, places or [""] * len(names), strict=True)
    ]


def named_sources(paths: Iterable[Path], known: Sequence[IndexSource]) -> list[IndexSource]:
    """Return the sources that a user names, each once, under the spelling of the index.

    Args:
        paths: What the user named.
        known: Sources of the index.
    """
    by_place = {one.place: one for one in known}
    moved = {one.name: one for one in known if not os.path.lexists(fixed_root(Path(one.place)))}
    found: dict[str, IndexSource] = {}
    for source in map(source_of, paths):
        before = by_place.get(source.place) or moved.get(source.name)
        found.setdefault(source.place, IndexSource(before.name if before else source.name, source.place))
    return list(found.values())


def wanted_sources(
    named: Sequence[IndexSource],
    known: Sequence[IndexSource],
    excluded: Sequence[str],
    *,
    add: bool,
    may_be_empty: bool,
) -> WantedSources:
    """Return what an update is to index.

    Args:
        named: Sources that the user named. What was removed and is named itself is indexed again.
        known: Sources of the index.
        excluded: Real paths that were removed from the index.
        add: Keep the known sources too.
        may_be_empty: Whether finding nothing is no mistake.

    Raises:
        DataError: A known source is to be kept and is not there.
    """
    chosen = list(named)
    if add:
        names = {one.name for one in named}
        stay = [one for one in known if one.name not in names]
        if gone := [one.name for one in stay if not os.path.lexists(fixed_root(one.path))]:
            raise DataError(f"{gone[0]}, which the index holds, is not there: take it away with pyrag index remove")
        chosen = [*stay, *named]
    again = {one.place for one in named}
    still = tuple(one for one in excluded if one not in again and any(is_below(one, its.place) for its in chosen))
    return WantedSources(tuple(chosen), still, may_be_empty)


def check_dropped(named: Sequence[IndexSource], known: Sequence[IndexSource], out: Path) -> None:
    """Raise `DataError` if what an index holds would be dropped for paths that it does not know.

    Args:
        named: Sources that the user named.
        known: Sources of the index.
        out: Folder of the index.
    """
    names = {one.name for one in known}
    if any(one.name in names for one in named):
        return
    lost = [one.name for one in known if not any(is_below(one.place, other.place) for other in named)]
    if lost:
        raise DataError(
            f"the index {out} was built from {_listed(names)}, and {_listed(one.name for one in named)} is not among "
            "them: keep both with --add, put the new files in place of the old ones with --replace, or choose another "
            "--out"
        )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies in it.

    Args:
        path: The path.
        folder: The folder; both without links.
    """
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def located(name: str, sources: Iterable[IndexSource]) -> tuple[Path, str]:
    """Return the path of a file of an index, and its name in an archive, which is empty outside of one.

    Args:
        name: Name of the file in the index.
        sources: Sources of the index.
    """
    place = next(filter(None, (source.located(name) for source in sources)), name)
    outer, mark, member = place.partition(_MEMBER)
    return (Path(outer), member) if mark and outer.lower().endswith(ARCHIVE) else (Path(place), "")


def _listed(names: Iterable[str], maximum: int = 3) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - maximum} more" if len(listed) > maximum else ""
    return ", ".join(listed[:maximum]) + more
