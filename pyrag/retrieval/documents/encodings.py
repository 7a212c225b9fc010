"""Recoding of text files to UTF-8 while they are read.

Without the name of an encoding, files must be UTF-8, or UTF-16 or UTF-32 with a byte order mark. With a name, a file
that is not UTF-8 is read in that encoding.
`auto` means UTF-16 if the bytes show it, and otherwise the encoding that `chardet` detects in the first part that is
not ASCII. If `chardet` is uncertain about a short Western European text, windows-1252 is used if the result looks like
text. A byte order mark overrides the name. Nothing is read twice, since a file is the same in all these encodings up to
its first byte above 127.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import IO, Any

from pyrag.errors import DataError, UsageError
from pyrag.retrieval.documents.model import CARDS, PLAIN, TABLES

AUTO = "auto"
WINDOWS = "windows-1252"
KINDS = (*TABLES, *PLAIN, *CARDS, ".md", ".markdown")
_CHUNK = 1 << 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before the mark of UTF-16, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII = bytes(range(128))
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_NO_WINDOWS = re.compile(
    rb"[\x81\x8d\x8f\x90\x9d]|[\xc3-\xf4][\x80-\xbf]"  # undefined in windows-1252, or part of UTF-8
    rb"|[a-z\xc0-\xff][\x80-\x8b\x8e\x91\x93-\x99\x9b\x9e-\xb6\xb8-\xbf][a-z\xc0-\xff]"  # signs within a word
    rb"|\b[\xa1-\xa6\xa8\xac-\xb3\xb5\xb9\xbc-\xbe][a-z]|[a-z][\xa1-\xa9\xac-\xae\xaf\xb1\xb3\xb5\xb8\xbc-\xbf](?:[a-z]|\b)"
)
_UNSURE = 0.12  # chardet's confidence
_UNCERTAIN = 0.04
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd]")


def has_mark(head: bytes) -> bool:
    """Return whether a text begins with a byte order mark of UTF-16 or UTF-32."""
    return any(head.startswith(mark) for mark, _ in _MARKS)


def checked_encoding(name: str) -> str:
    """Return Python's name of a text encoding, or `auto`.

    Raises:
        UsageError: No text encoding has this name.
    """
    if name.lower() == AUTO:
        return AUTO
    try:
        "".encode(name)  # also refuses encodings of bytes, such as zip
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise UsageError(f"there is no encoding {name!r}: name one such as windows-1252, utf-16 or auto") from None


class Recoded(io.RawIOBase):
    """Stream that recodes another stream to UTF-8. `encoding` is empty as long as the bytes are UTF-8."""

    def __init__(self, stream: IO[bytes], name: str, encoding: str) -> None:
        self.encoding = ""
        self._stream = stream
        self._name = name
        self._wanted = encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = self._settled = False
        self._held = b""  # the beginning of a character that may be UTF-8
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = self._stream.read(_CHUNK)
            self._ready = self._recoded(self._held + chunk, final=not chunk)
            if not chunk:
                break
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _recoded(self, chunk: bytes, *, final: bool) -> bytes:
        self._held = b""
        if not self._begun:
            self._begun = True
            self._begin(chunk)
        if not self._settled and not chunk.isascii():
            chunk = self._settle(chunk, final)
        return self._decoded(chunk, final) if self._decoder else chunk

    def _begin(self, head: bytes) -> None:
        """Choose the encoding if the beginning shows it, by a byte order mark or by two or four bytes per character."""
        declared = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
        if declared:
            self._choose(declared)
        elif self._wanted == AUTO:
            if wide := _wide(head):
                self._choose(wide)
        elif not _extends_ascii(self._wanted) and (b"\0" in head or not self._wanted.startswith(("utf-16", "utf-32"))):
            self._choose(self._wanted)

    def _settle(self, chunk: bytes, final: bool) -> bytes:
        """Choose the encoding at the first bytes above 127; return the part of the chunk that can be decoded so far."""
        try:
            size = codecs.utf_8_decode(chunk, "strict", final)[1]
        except UnicodeDecodeError:
            self._choose(self._wanted, chunk)
            return chunk
        if chunk[:size].isascii() and size < len(chunk):
            self._held = chunk[size:]
            return chunk[:size]
        self._settled = True
        return chunk

    def _choose(self, encoding: str, chunk: bytes = b"") -> None:
        self._settled = True
        if encoding == AUTO:
            encoding = detected_encoding(chunk)
            if not encoding:
                return  # the reader reports what is wrong with it as UTF-8
        self.encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def _decoded(self, chunk: bytes, final: bool) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decode(chunk, final).encode("utf-8", "replace")
        except UnicodeError as error:
            raise DataError(f"{self._name}: not {self.encoding} ({error}): name another --encoding") from error


def detected_encoding(data: bytes, western: str = WINDOWS) -> str:
    """Return the encoding of a text that is not UTF-8; empty if it is not clear.

    Args:
        data: Beginning of the text.
        western: Encoding of short Western European texts, which `chardet` does not recognise reliably.
    """
    if _BINARY.search(data) or _is_spoiled(data):
        return ""
    from chardet import detect

    guess = detect(data)
    confidence = float(guess["confidence"] or 0)
    if confidence < _UNSURE and not _NO_WINDOWS.search(data.lower()):
        return western
    if not guess["encoding"] or confidence < _UNCERTAIN:
        return ""
    try:
        name = codecs.lookup(guess["encoding"]).name
        text = codecs.getincrementaldecoder(name)().decode(data)  # whose last character may be cut off
    except (LookupError, UnicodeError):
        return ""
    return "" if _CONTROLS.search(text) or name.startswith("utf-8") else name


def _is_spoiled(data: bytes) -> bool:
    """Return whether a text is UTF-8 except for a few broken bytes."""
    text = data.decode(errors="replace")
    bad = text.count("\ufffd")
    return 3 * bad < sum(1 for character in text if character > "\x7f")


def _wide(head: bytes) -> str:
    """Return the kind of UTF-16 of a text without a mark, judged by its zero bytes; empty for other texts."""
    first, second = head[::2].count(0), head[1::2].count(0)
    if 5 * second > len(head) and not first:
        return "utf-16-le"
    return "utf-16-be" if 5 * first > len(head) and not second else ""


def _extends_ascii(encoding: str) -> bool:
    try:
        return _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except UnicodeError:
        return False
