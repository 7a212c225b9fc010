"""Passages out of a user's files: JSON lines, JSON, CSV, TSV, text, Markdown, HTML, PDF and Word, packed or not.

`read_passages` streams: it holds one record or paragraph and eight bytes for each id, whatever the size of the input.
What is wrong ends the reading with a `DataError` that names the place and the cure; to go on with the other files of a
folder is up to `pyrag.retrieval.indexing`. Which files are read says `find`, how they are unpacked `unpack`.

A passage without an id of its own gets `<path in its folder>#<hash of title and text>`, which stays the same when
other passages come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyrag._io import plugins
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.documents import prose, records
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.model import KNOWN, MARK, MAX_LINE, TABLES, Columns, Document, Placed
from pyrag.retrieval.documents.unpack import Opened, opened
from pyrag.trace.model import Passage

__all__ = ["MARK", "MAX_LINE", "Columns", "Document", "Placed", "find_documents", "read_opened", "read_passages"]

VERSION = 2  # of what is made of a file: another one has files that did not change read again
_READERS = {
    ".jsonl": records.json_lines,
    ".json": records.json_file,
    ".txt": prose.plain_text,
    ".md": prose.markdown,
    ".html": prose.html,
    ".htm": prose.html,
    ".pdf": prose.pdf,
    ".docx": prose.docx,
}


def read_opened(file: Opened, columns: Columns) -> Iterator[Placed]:
    """Return all passages of one document, in order.

    Args:
        file: The open document.
        columns: Columns of tables.

    Raises:
        DataError: The document cannot be read; the message names the place.
    """
    kind = file.document.kind
    if kind in TABLES and kind not in _READERS:
        return records.table(file, columns)
    return _READERS.get(kind, _added)(file)


def _added(file: Opened) -> Iterator[Placed]:
    """Yield the passages of a file that an installed package reads. Raises `DataError` if it cannot.

    Its entry point of the group `pyrag.documents` is named as the suffix. The function takes a file's bytes and name,
    and returns text, which is cut into passages as Markdown is, or records: mappings with `text`, and with `title`,
    `id` and further fields if they have some.
    """
    suffix, name = file.document.kind.removeprefix("."), file.document.name
    package = plugins.package_of_part("documents", suffix)
    try:
        read = plugins.loaded_function("documents", suffix, "read(data, name)")
    except ConfigError as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    try:
        given: Any = read(file.whole(), name)
        values = given if isinstance(given, str) else list(given)
    except DataError:
        raise
    except Exception as error:  # whatever the package's code raises
        raise DataError(f"{name}: the reader of {package} failed ({type(error).__name__}: {error})") from error
    if isinstance(values, str):
        yield from prose.running_text(file, values)
        return
    for number, value in enumerate(values, 1):
        where = f"{name} record {number}"
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: the reader of {package} gave a {type(value).__name__}: it must give mappings")
        yield records.record_of_value(file, dict(value), where)


def read_passages(
    paths: Iterable[str | Path],
    columns: Columns = Columns(),  # noqa: B008
    *,
    follow_links: bool = False,
) -> Iterator[Passage]:
    """All passages of the files and folders, in order, each id once.

    Args:
        paths: Files, folders and globs.
        columns: The columns of tables, and the encoding of text files that are not UTF-8.
        follow_links: Whether symbolic links that lead out of a folder are followed.

    Raises:
        DataError: A file cannot be read, or an id is used twice.
    """
    given = [Path(path) for path in paths]
    if not given:
        raise nothing_given()
    seen: set[int] = set()
    count = 0
    for placed in _read_all(given, columns, follow_links):
        key = hash(placed.passage.id)  # 64 bits: twenty million ids cost one gigabyte less than their texts would
        if key in seen:
            if not placed.own_id:
                continue  # the same text under the same name again
            _refuse_second(placed, _read_all(given, columns, follow_links))
        seen.add(key)
        count += 1
        yield placed.passage
    if not count:
        raise nothing_found(given)


def nothing_given() -> DataError:
    return DataError(f"no files were given: name at least one {KNOWN} file or a folder of them")


def nothing_found(paths: Iterable[str | Path]) -> DataError:
    return DataError(f"no passage was found in {', '.join(map(str, paths))}: the files are empty, add some text")


def no_documents(paths: Iterable[str | Path]) -> DataError:
    return DataError(f"{next(iter(paths))} holds no file to read: name a folder with files of {KNOWN}")


def used_twice(key: str, first: str, second: str) -> DataError:
    """Return the error for an id that two passages claim.

    Args:
        key: The id.
        first: Place of the first passage.
        second: Place of the second.
    """
    return DataError(f"the id {key!r} is used twice, at {first} and at {second}: give each passage an id of its own")


def _read_all(paths: list[Path], columns: Columns, follow_links: bool) -> Iterator[Placed]:
    found = False
    for document in find_documents(paths, follow_links=follow_links):
        found = True
        with opened(document, columns.encoding) as file:
            yield from read_opened(file, columns)
    if not found:
        raise no_documents(paths)


def _refuse_second(placed: Placed, again: Iterable[Placed]) -> None:
    """Raise the error for an id used twice; its first place is found by reading again, which saves memory otherwise."""
    first = next(earlier for earlier in again if earlier.passage.id == placed.passage.id)
    if first.place != placed.place:
        raise used_twice(placed.passage.id, first.place, placed.place)
