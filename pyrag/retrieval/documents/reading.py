"""Passages from a user's files: JSON lines, JSON, CSV, TSV, text, Markdown, HTML, PDF and Word, compressed or not.

`read_passages` is streaming: it only holds one record or paragraph, and two hashes per id. Any fault raises a
`DataError` that names the place and the remedy; `pyrag.retrieval.indexing` continues with the other files of a folder.
`find` selects the files, and `unpack` unpacks them.

A passage without its own id gets `<path in its folder>#<hash of title and text>`, which does not depend on other
passages. Equal passages with the same id are merged. If different passages have the same id, the first one keeps it,
and the others get the id with their hash.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyrag._io import plugins
from pyrag.errors import ConfigError, DataError, install_extra
from pyrag.retrieval.documents import json_records, prose, tables
from pyrag.retrieval.documents.find import find_documents
from pyrag.retrieval.documents.formats.mail import mailbox_messages, parsed_mail
from pyrag.retrieval.documents.formats.office import office_markdown
from pyrag.retrieval.documents.model import (
    KNOWN,
    MAIL,
    MARK,
    MAX_LINE,
    OFFICE,
    PACKED,
    PLAIN,
    TABLES,
    WORD,
    Columns,
    Document,
    Placed,
    is_read,
    utf8,
    with_distinct_id,
)  # fmt: skip
from pyrag.retrieval.documents.model import kind as kind_of
from pyrag.retrieval.documents.opened_document import Opened, attached, opened
from pyrag.retrieval.filters.metadata import encoded
from pyrag.trace.model import Passage

__all__ = ["MARK", "MAX_LINE", "Columns", "Document", "Placed", "find_documents", "read_opened", "read_passages"]

VERSION = 8  # of the passages made from files; increase it to have unchanged files read again
_MAX_DEPTH = 8  # of e-mails attached to e-mails
_SHOWN = 10  # kinds in a message
_READERS = {
    ".jsonl": json_records.json_lines,
    ".ndjson": json_records.json_lines,
    ".json": json_records.json_file,
    **dict.fromkeys(PLAIN, prose.plain_text),
    ".ics": prose.calendar,
    ".vcf": prose.contacts,
    ".bib": prose.bibliography,
    **dict.fromkeys(WORD, prose.docx),
    ".md": prose.markdown,
    ".markdown": prose.markdown,
    ".html": prose.html,
    ".htm": prose.html,
    ".xhtml": prose.html,
    ".pdf": prose.pdf,
    ".ipynb": prose.notebook,
    ".odp": prose.odp,
}


def read_opened(file: Opened, columns: Columns) -> Iterator[Placed]:
    """Return all passages of a document, in order.

    Args:
        file: The open document.
        columns: Columns of tables.

    Raises:
        DataError: The document cannot be read; the message names the place.
    """
    kind = file.document.kind
    if kind in TABLES and kind not in _READERS:
        return tables.table(file, columns)
    if kind in OFFICE and kind.removeprefix(".") not in plugins.names("documents"):
        return prose.running_text(file, *office_markdown(file))
    if kind in MAIL:
        return _mails(file, columns)
    return _READERS.get(kind, _added)(file)


def _mails(file: Opened, columns: Columns) -> Iterator[Placed]:
    """Yield the passages of an e-mail, or of each e-mail in a mailbox."""
    data = file.whole()
    messages = mailbox_messages(data) if file.document.kind == ".mbox" else [data]
    for message in messages:
        try:
            yield from _mail(file, message, columns)
        except DataError as error:
            if len(messages) == 1:
                raise
            file.leave_out(error)
            file.lacks_reader = True


def _mail(file: Opened, data: bytes, columns: Columns) -> Iterator[Placed]:
    """Yield the passages of an e-mail and of its attachments. An attachment that cannot be read leaves a remark."""
    mail = parsed_mail(data, file.document.name)
    yield from prose.mail(file, mail)
    for name, data in mail.attachments:
        if not is_read(kind_of(name)) or file.document.name.count("!/") > _MAX_DEPTH:
            cure = "save and unpack it" if kind_of(name) in PACKED else f"save it, and convert it to {KNOWN}"
            file.remarks.append(f"the attachment {utf8(name)!r} is left out: {cure}")
            file.lacks_reader = True
            continue
        inner = attached(file, utf8(name), data)
        try:
            yield from (replace(item, document=file.document, line=0) for item in read_opened(inner, columns))
        except (DataError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            file.remarks.append(f"the attachment {utf8(name)!r} is left out: {error}")
            file.lacks_reader = True
        file.lacks_reader |= inner.lacks_reader
        file.remarks += [f"{remark} ({utf8(name)})" for remark in inner.remarks]


def _added(file: Opened) -> Iterator[Placed]:
    """Yield the passages of a file that an installed package reads.

    The package's entry point of the group `pyrag.documents` has the suffix as its name. The function takes a file's
    bytes and name. It returns text, which is cut into passages like Markdown, or records: mappings with `text` and
    optionally `title`, `id` and further fields.

    Raises:
        DataError: The package cannot be loaded, or its reader fails or returns something else.
    """
    suffix, name = file.document.kind.removeprefix("."), file.document.name
    package = plugins.package_of_part("documents", suffix)
    try:
        read = plugins.loaded_function("documents", suffix, "read(data, name)")
    except ConfigError as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    try:
        result: Any = read(file.whole(), name)
        values = result if isinstance(result, str) else list(result)
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
            raise DataError(
                f"{where}: the reader of {package} returned a {type(value).__name__}: it must yield mappings"
            )
        yield json_records.record_of_value(file, dict(value), where)


def read_passages(
    paths: Iterable[str | Path],
    columns: Columns = Columns(),  # noqa: B008
    *,
    follow_links: bool = False,
) -> Iterator[Passage]:
    """Yield all passages of files and folders, in order and once each, with the ids that an index gives them.

    Args:
        paths: Files, folders and globs.
        columns: Columns of tables, and the encoding of text files that are not UTF-8.
        follow_links: True to follow symbolic links that lead out of a folder.

    Raises:
        DataError: A file cannot be read, or there are no files or passages.
    """
    named_paths = [Path(path) for path in paths]
    if not named_paths:
        raise nothing_given()
    seen: dict[int, int] = {}  # hashes of 64 bits, which cost less memory than the ids of twenty million passages
    for item in _read_all(named_paths, columns, follow_links):
        passage = item.passage
        content = hash((passage.title, passage.text, encoded(passage.metadata)))
        while (known := seen.get(hash(passage.id))) is not None and known != content:
            passage = with_distinct_id(passage)
        if known is None:
            seen[hash(passage.id)] = content
            yield passage
    if not seen:
        raise nothing_found(named_paths)


def nothing_given() -> DataError:
    return DataError(f"no files were given: name at least one {KNOWN} file or a folder of them")


def nothing_found(paths: Iterable[str | Path]) -> DataError:
    return DataError(f"no passage was found in {', '.join(map(str, paths))}: the files are empty, add some text")


def no_documents(paths: Iterable[str | Path], unread: Mapping[str, int] = MappingProxyType({})) -> DataError:
    """Return the error for folders without a file that is read.

    Args:
        paths: Files, folders and globs.
        unread: Numbers of files of other kinds, by kind.
    """
    counts = ", ".join(f"{name} {count}" for name, count in sorted(unread.items())[:_SHOWN])
    others = f", only {counts}" if counts else ""
    more = f" and {len(unread) - _SHOWN} more kinds" if len(unread) > _SHOWN else ""
    cure = install_extra("office") if any(kind in OFFICE for kind in unread) else f"name a folder with files of {KNOWN}"
    return DataError(f"{next(iter(paths))} holds no file to read{others}{more}: {cure}")


def _read_all(paths: list[Path], columns: Columns, follow_links: bool) -> Iterator[Placed]:
    has_documents = False
    for document in find_documents(paths, follow_links=follow_links):
        has_documents = True
        with opened(document, columns.encoding) as file:
            yield from read_opened(file, columns)
    if not has_documents:
        raise no_documents(paths)
