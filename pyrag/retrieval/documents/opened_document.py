"""Unpacked bytes of documents, with limits against decompression bombs.

A gzip file can be a thousand times smaller than its content, xz and bzip2 files even more, and the members of an
archive may share their bytes. Therefore `check_growth` holds for everything that is unpacked: compressed files, members
of archives, and packed documents such as Word files.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Any

from pyrag.errors import DataError
from pyrag.retrieval.documents.encodings import AUTO, KINDS, Recoded, has_mark
from pyrag.retrieval.documents.find import named_members, unreadable
from pyrag.retrieval.documents.model import MAX_WHOLE, Document

FREE = 64 << 20  # unpacked bytes that any file may have
RATIO = 100  # of unpacked to packed bytes beyond `FREE`; the converter of Office files has the same limit
MAX_UNPACKED = 1 << 38
MAX_PARTS = 10_000  # of a packed document, such as a Word file
_MAX_PACKAGE = 512 << 20  # unpacked bytes of a packed document, which is held in memory
MAX_REASONS = 20  # per file
_BUFFER = 1 << 16
_MARK = 4  # bytes of the longest byte order mark

_Reader = Callable[[Any], IO[bytes]]
_OPENERS: dict[str, _Reader] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),  # type: ignore[dict-item,return-value]
    ".bz2": lambda file: bz2.BZ2File(file, "rb"),
    ".xz": lambda file: lzma.LZMAFile(file, "rb"),  # noqa: SIM115 (closed with the file under it)
}
_BROKEN = (KeyError, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def check_growth(unpacked: int, packed: int, name: str) -> None:
    """Raise `DataError` if more bytes were unpacked than any honest file holds.

    Args:
        unpacked: Unpacked bytes.
        packed: Packed bytes that they came from.
        name: Name of the file in messages.
    """
    if unpacked > min(max(FREE, RATIO * packed), MAX_UNPACKED):
        raise DataError(
            f"{name} unpacks to more than {RATIO} times its size, as only a trap does: "
            "leave it out, or if you trust it, unpack it or save it in parts"
        )


def check_package(archive: zipfile.ZipFile, size: int, name: str) -> None:
    """Raise `DataError` if a packed document has too many parts, or unpacks to too much.

    Args:
        archive: The open document.
        size: Bytes of the packed document.
        name: Name of the file in messages.
    """
    members = archive.infolist()
    if len(members) > MAX_PARTS:
        raise DataError(f"{name} has more than {MAX_PARTS:,} parts: save it again, without pictures")
    unpacked = sum(member.file_size for member in members)
    if unpacked > _MAX_PACKAGE:
        raise DataError(f"{name} unpacks to more than {_MAX_PACKAGE >> 20} MiB: split it")
    check_growth(unpacked, size, name)


class Tap(io.RawIOBase):
    """Stream that counts and digests the bytes read from a file, so that the file need not be read again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._hash.update(memoryview(buffer)[:size])
        self.count += size
        return size

    def digest(self) -> str:
        """Read the rest of the file and return the digest of the whole."""
        while data := self._file.read(_BUFFER):
            self._hash.update(data)
        return self._hash.hexdigest()


class Unpacked(io.RawIOBase):
    """Stream of unpacked bytes that raises `DataError` beyond the limits."""

    def __init__(self, stream: IO[bytes], name: str, packed: Callable[[], int]) -> None:
        self._stream = stream
        self._name = name
        self._packed = packed
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size: int = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self.count += size
        check_growth(self.count, self._packed(), self._name)
        return size


@dataclass(slots=True)
class BadRecords:
    """Omitted records of a file: their number, and the faults of the first few."""

    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, reason: str) -> None:
        self.count += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)


class Opened:
    """Open document, with its unpacked bytes in `stream`.

    Attributes:
        remarks: Remarks on how the document was read.
        lacks_reader: Whether other libraries, or other versions of them, may read more of the document.
        bad_records: Collection of the omitted records. None to raise an error for the first one.
    """

    def __init__(self, document: Document, tap: Tap, stream: io.BufferedReader, encoding: str = "") -> None:
        self.document = document
        self.stream: IO[bytes] = stream
        self.remarks: list[str] = []
        self.lacks_reader = False
        self.bad_records: BadRecords | None = None
        self._tap = tap
        self._wanted = encoding
        self._recoded: Recoded | None = None
        if document.kind in KINDS and (encoding or has_mark(stream.peek(_MARK)[:_MARK])):
            self._recoded = Recoded(stream, document.name, encoding or AUTO)
            self.stream = io.BufferedReader(self._recoded, _BUFFER)

    @property
    def encoding_cure(self) -> str:
        """Advice for a text that is not UTF-8."""
        if self._wanted == AUTO:
            return ", or name its encoding, which is not clear, such as --encoding windows-1251"
        return f", or add --encoding with its name, or --encoding {AUTO}"

    def leave_out(self, error: DataError) -> None:
        """Note that a record is omitted, or raise the error if none may be omitted."""
        if self.bad_records is None:
            raise error
        self.bad_records.add(str(error))

    @property
    def position(self) -> int:
        return self._tap.count

    @property
    def encoding(self) -> str:
        """Encoding of the text read so far; empty for UTF-8."""
        return self._recoded.encoding if self._recoded else ""

    def digest(self) -> str:
        return self._tap.digest()

    def whole(self) -> bytes:
        """Return all bytes, for formats that cannot be read in pieces.

        Raises:
            DataError: The document is too large.
        """
        data = self.stream.read(MAX_WHOLE + 1)
        if len(data) > MAX_WHOLE:
            raise DataError(
                f"{self.document.name} is larger than {MAX_WHOLE >> 20} MiB, "
                "which its format does not let be read in pieces: split it"
            )
        return data


@contextmanager
def opened(document: Document, encoding: str = "") -> Iterator[Opened]:
    """Open a document as a stream of its unpacked bytes.

    Args:
        document: File or member of an archive.
        encoding: Encoding of text that is not UTF-8, which is recoded to UTF-8; see `encodings`.

    Raises:
        DataError: The file is broken, unreadable or unpacks to too much. This also applies while it is read.
    """
    try:
        with _file(document) as file:
            tap = Tap(file)
            yield Opened(document, tap, _unpacking(document, tap), encoding)
    except _BROKEN as error:
        raise _broken(document, str(error)) from error
    except (RuntimeError, NotImplementedError) as error:
        if not document.member:
            raise
        raise _broken(document, str(error)) from error  # zipfile's errors for encryption and unknown methods
    except OSError as error:
        if error.errno is None:  # bz2's error for a broken file
            raise _broken(document, str(error)) from error
        raise unreadable(document.name, error) from error


def attached(file: Opened, name: str, data: bytes) -> Opened:
    """Return an attachment of a document as an open document.

    Args:
        file: The document with the attachment.
        name: Name of the attachment.
        data: Content of the attachment.
    """
    outer = file.document
    document = replace(outer, key=f"{outer.key}!/{name}", member=name, is_named=False, shown=outer.name)
    tap = Tap(io.BytesIO(data))
    inner = Opened(document, tap, _unpacking(document, tap))
    inner.bad_records = file.bad_records
    return inner


def digest_of(document: Document) -> str:
    with opened(document) as file:
        return file.digest()


@contextmanager
def _file(document: Document) -> Iterator[IO[bytes]]:
    """Open a document as it is stored. For a member of an archive, the limits apply already."""
    with document.path.open("rb", buffering=0) as file:
        if not document.member:
            yield file
            return
        size = os.fstat(file.fileno()).st_size
        with zipfile.ZipFile(file) as archive:
            info = archive.NameToInfo.get(document.member) or named_members(archive)[document.member]
            member = archive.open(info)
            packed_size = min(info.compress_size, size)
            yield io.BufferedReader(Unpacked(member, document.name, lambda: packed_size), _BUFFER)


def _unpacking(document: Document, tap: Tap) -> io.BufferedReader:
    if not document.compression:
        return io.BufferedReader(tap, _BUFFER)
    inner = _OPENERS[document.compression](io.BufferedReader(tap, _BUFFER))
    return io.BufferedReader(Unpacked(inner, document.name, lambda: tap.count), _BUFFER)


def _broken(document: Document, reason: str) -> DataError:
    kind = ".zip" if document.member and not document.compression else document.compression or document.kind
    return DataError(f"{document.name} is a broken {kind} file ({reason}): copy or download it again")
