"""Search for documents in files, folders, globs and archives.

A folder is walked in sorted order, skipping hidden files, files of other kinds and pyrag's own index folders. It is
visited only once, even if symbolic links form a circle. A link that leads out of all named folders is followed only on
request. If a file or link in a folder cannot be read or followed, this is reported to `on_bad`; for a path that the
user named, `DataError` is raised.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyrag.errors import DataError
from pyrag.retrieval.documents.encodings import detected_encoding
from pyrag.retrieval.documents.model import ARCHIVE, KNOWN, MARK, OFFICE, Document, Stamp, is_read, kind, utf8

LEADS_OUT = "leads out of the folder"
_UTF8_NAME = 0x800  # flag of a member whose name is UTF-8
_SAMPLE_NAMES = 200
OnBad = Callable[[str, DataError], None]


def _raise_it(name: str, error: DataError) -> None:
    """Raise the error. Callers that accept no bad file pass this as `on_bad`."""
    raise error


def _ignore(name: str) -> None:
    """Do nothing. Callers that do not count files of other kinds pass this as `on_unread`."""


@dataclass(frozen=True, slots=True)
class _Search:
    """Rules of a search for bad files and links. Links may only lead into the folders `inside`; None allows any."""

    on_bad: OnBad
    inside: tuple[str, ...] | None
    on_unread: Callable[[str], None] = _ignore

    def may_follow(self, path: Path) -> bool:
        """Return whether a path, after resolving all symbolic links, is in the allowed folders."""
        if self.inside is None:
            return True
        real = os.path.realpath(path)
        return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.inside)

    def passes_by(self, path: Path) -> bool:
        """Return whether to skip a path because it leads outside. If it leads to something readable, report it."""
        if self.may_follow(path):
            return False
        if path.is_dir() or (path.is_file() and _is_read(path.name)):
            name, end = utf8(str(path)), utf8(os.path.realpath(path))
            message = f"{name} {LEADS_OUT}, to {end}: name that too, or add --follow-links"
            if self.on_bad is _raise_it:
                warnings.warn(f"left out: {message}", stacklevel=2)
            else:
                self.on_bad(name, DataError(message))
        return True


def find_documents(
    paths: Iterable[str | Path],
    on_bad: OnBad = _raise_it,
    *,
    follow_links: bool = False,
    names: Mapping[Path, str] | None = None,
    on_unread: Callable[[str], None] = _ignore,
) -> Iterator[Document]:
    """Find the documents behind files, folders, globs and archives. Each document is yielded once.

    Args:
        paths: Files, folders and globs.
        on_bad: Called with the name and the error of each unreadable file or folder inside a folder.
        follow_links: True to follow symbolic links that lead out of the named folders.
        names: Names by absolute path; documents and errors use the name instead of the path.
        on_unread: Called with the name of each file of an unsupported kind; by default, these are ignored.

    Raises:
        DataError: A named path is missing, unreadable or of an unknown kind.
    """
    seen: set[int] = set()
    roots = list(map(Path, paths))
    inside = None if follow_links else tuple({os.path.realpath(fixed_root(path)) for path in roots})
    for path in roots:
        for document in _documents(path, _Search(on_bad, inside, on_unread), (names or {}).get(path)):
            real = hash((os.path.realpath(document.path), document.member))  # 64 bits, for millions of files
            if real not in seen:
                seen.add(real)
                yield document


def _documents(path: Path, search: _Search, name: str | None) -> Iterator[Document]:
    """Yield the documents of a path, under a different name if `name` is not None."""
    if name is None:
        yield from _behind(path, search)
        return
    respelled = _Respelled(path, name)
    if search.on_bad is not _raise_it:
        search = replace(search, on_bad=partial(respelled.bad, search.on_bad))
    yield from map(respelled.document, _behind(path, search))


@dataclass(frozen=True, slots=True)
class _Respelled:
    """Absolute path, with the name that documents and errors use instead."""

    path: Path
    name: str

    def document(self, document: Document) -> Document:
        return replace(document, shown=self._name(str(document.path)))

    def bad(self, on_bad: OnBad, name: str, error: DataError) -> None:
        on_bad(self._name(name), DataError(self._name(str(error))))

    def _name(self, text: str) -> str:
        return text.replace(str(fixed_root(self.path)), str(fixed_root(Path(self.name))))


def unreadable(name: str | Path, error: OSError) -> DataError:
    """Return the error for a file that cannot be read.

    Args:
        name: Name of the file.
        error: Error reported by the system.
    """
    return DataError(f"{utf8(str(name))} cannot be read ({error.strerror or error}): check its permissions")


def _behind(path: Path, search: _Search) -> Iterator[Document]:
    if path.is_dir():
        yield from _walk(path, path, set(), search, is_root=True)
    elif _is_pattern(path):
        yield from _matches(path, search)
    else:
        yield from _single(path)


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not _exists(path)


def fixed_root(path: Path) -> Path:
    """Return the path itself, or the last folder of a pattern before its first wildcard."""
    if not _is_pattern(path):
        return path
    return Path(*path.parts[: next(at for at, part in enumerate(path.parts) if glob.has_magic(part))])


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _single(path: Path) -> Iterator[Document]:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist: check the path") from None
    except OSError as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path} is neither a file nor a folder: name a file or a folder of files")
    if path.suffix.lower() == ARCHIVE:
        yield from _members(path, utf8(path.name), _raise_it, _ignore)
    elif path.suffix.lower() in OFFICE or is_read(kind(path.name)):
        yield Document(path, utf8(path.name), _stamp(status))
    else:
        raise DataError(f"{path} is of a kind that pyrag does not read: convert it to {KNOWN}")


def _matches(pattern: Path, search: _Search) -> Iterator[Document]:
    """Yield the documents of a pattern; keys are relative to the last folder before the first wildcard."""
    root = fixed_root(pattern)
    if "**" in pattern.parts:
        yield from _matches_below(pattern, root, search)
        return
    paths = sorted(map(Path, glob.glob(str(pattern))))  # noqa: PTH207 (Path.glob takes no absolute one)
    if not paths:
        raise _nothing_matches(pattern)
    for path in paths:
        if search.passes_by(path):
            continue
        if path.is_dir():
            yield from _walk(path, root, set(), search)
        else:
            yield from _entry(path, root, search)


def _matches_below(pattern: Path, root: Path, search: _Search) -> Iterator[Document]:
    """Yield the files that match a pattern with `**`. (`glob` would follow circular links forever.)"""
    pattern_parts = pattern.parts[len(root.parts) :]
    empty = True
    for document in _walk(root, root, set(), search):
        if _matches_parts(document.path.parts[len(root.parts) :], pattern_parts):
            empty = False
            yield document
    if empty:
        raise _nothing_matches(pattern)


def _matches_parts(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a path match the parts of a pattern, in which `**` matches any number of folders."""
    places = _skipped({0}, pattern)  # places in the pattern up to which the parts so far match
    for part in parts:
        stay = {place for place in places if pattern[place : place + 1] == ("**",)}
        step = {place + 1 for place in places if place < len(pattern) and fnmatch.fnmatchcase(part, pattern[place])}
        places = _skipped(stay | step, pattern)
    return len(pattern) in places


def _skipped(places: set[int], pattern: Sequence[str]) -> set[int]:
    """Extend places in a pattern by the places after each `**`, which may match nothing."""
    for place, part in enumerate(pattern):
        if part == "**" and place in places:
            places.add(place + 1)
    return places


def _nothing_matches(pattern: Path) -> DataError:
    return DataError(f"nothing matches {pattern}: check the pattern")


def _walk(
    folder: Path, root: Path, above: set[tuple[int, int]], search: _Search, *, is_root: bool = False
) -> Iterator[Document]:
    try:
        status = folder.stat()
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        (_raise_it if is_root else search.on_bad)(utf8(str(folder)), unreadable(folder, error))
        return
    here = (status.st_dev, status.st_ino)
    if here in above or (folder / MARK).exists():
        return
    for entry in entries:
        if entry.name.startswith(".") or (entry.is_symlink() and search.passes_by(entry)):
            continue
        if entry.is_dir():
            yield from _walk(entry, root, above | {here}, search)
        else:
            yield from _entry(entry, root, search)


def _is_read(name: str) -> bool:
    return is_read(kind(name)) or Path(name).suffix.lower() == ARCHIVE


def _entry(path: Path, root: Path, search: _Search) -> Iterator[Document]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return  # a link to nothing, or deleted meanwhile
    except OSError as error:
        if not path.is_symlink():  # ignore a link to itself
            search.on_bad(utf8(str(path)), unreadable(path, error))
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if not _is_read(path.name):
        search.on_unread(utf8(path.name))
        return
    key = utf8(path.relative_to(root).as_posix())
    if path.suffix.lower() == ARCHIVE:
        yield from _members(path, key, search.on_bad, search.on_unread)
    else:
        yield Document(path, key, _stamp(status), is_named=False)


def _members(path: Path, key: str, on_bad: OnBad, on_unread: Callable[[str], None]) -> Iterator[Document]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(named_members(archive).items())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        on_bad(utf8(str(path)), DataError(f"{path} is a broken .zip file ({error}): copy or pack it again"))
        return
    except OSError as error:
        on_bad(utf8(str(path)), unreadable(path, error))
        return
    for name, member in members:
        hidden = any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
        if member.is_dir() or hidden:
            continue
        if not is_read(kind(name)):
            on_unread(utf8(name))
            continue
        yield Document(path, f"{key}!/{utf8(name)}", Stamp(member.file_size, member.CRC), name, on_bad is _raise_it)


def named_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by name. Names not marked as UTF-8 are decoded in their own encoding."""
    members = archive.infolist()
    raw_names = [_raw(member) for member in members if not member.flag_bits & _UTF8_NAME]
    encoding = _encoding_of_names([name for name in raw_names if not name.isascii()])
    members_by_name: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        is_marked = member.flag_bits & _UTF8_NAME or not encoding
        members_by_name.setdefault(member.filename if is_marked else _raw(member).decode(encoding, "replace"), member)
    return members_by_name


def _raw(member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a name, which `zipfile` decodes as code page 437."""
    return member.filename.encode("cp437", "replace")


def _encoding_of_names(names: Sequence[bytes]) -> str:
    """Return the encoding of names in an archive; empty for code page 437."""
    if not names:
        return ""
    text = b"\n".join(names[:_SAMPLE_NAMES])
    try:
        text.decode()
    except UnicodeDecodeError:
        return detected_encoding(text, western="cp437")
    return "utf-8"


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns)
