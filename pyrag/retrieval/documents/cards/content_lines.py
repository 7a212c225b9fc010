"""Content lines of contacts (RFC 6350, and versions 2.1 and 3.0) and calendars (RFC 5545).

`vobject` stops at the first broken line of a file, `icalendar` refuses a calendar that was cut off, and both need more
than 3 MB. This module reads lines in linear time, and needs nothing to be installed.
"""

from __future__ import annotations

import codecs
import quopri
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyrag.retrieval.documents.controls import without_controls

_FOLD = re.compile(rb"(?:\r\n?|\n)[ \t]")
_LINE_END = re.compile(rb"\r\n?|\n")
_NAME = re.compile(rb"(?:[\w-]+\.)?([\w-]+)(?=[;:])")
_GROUP = re.compile(rb"([\w-]+)\.")
_PARAMETER = re.compile(rb";\s*([\w-]+)(?:\s*=\s*((?:\"[^\"]*\"|[^\";:,]*)(?:,(?:\"[^\"]*\"|[^\";:,]*))*))?")
_CARET = re.compile(r"\^([n^'])")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANINGS = {"n": "\n", "N": "\n"}
_PIECES = {separator: re.compile(rf"(?:\\.|[^{separator}])*+", re.DOTALL) for separator in ";,"}
_SLOW = ("idna", "punycode")  # encodings that are decoded in quadratic time
_BINARY = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ContentLine:
    """Property of a contact or of a component of a calendar.

    Attributes:
        name: Name in upper case; empty if the line has no name.
        value: Value as written, decoded to text.
        parameters: Values of the parameters by name in upper case. Types without a name are under `TYPE`.
        group: Prefix that ties properties together, in lower case.
        is_binary: Whether the value is a picture or the like.
    """

    name: str
    value: str
    parameters: dict[str, list[str]] = field(default_factory=dict)
    group: str = ""
    is_binary: bool = False

    @property
    def text(self) -> str:
        """Value without its escapes, on one line."""
        return plain(self.value)

    @property
    def types(self) -> list[str]:
        """Types in lower case, such as `work` and `cell`."""
        return [kind.lower() for text in self.parameters.get("TYPE", []) for kind in text.split(",") if kind]

    def label(self, labels: Mapping[str, str]) -> str:
        """Return the readable name of the property."""
        return labels.get(self.name) or self.name.removeprefix("X-").replace("-", " ").capitalize()

    def parameter(self, name: str) -> str:
        return next(iter(self.parameters.get(name, [])), "")


def plain(value: str) -> str:
    """Return a value without its escapes, on one line."""
    return " ".join(_ESCAPED.sub(lambda mark: _MEANINGS.get(mark[1], mark[1]), value).split())


def parts(value: str, separator: str) -> list[str]:
    """Return the parts of a structured value, without escapes.

    Args:
        value: Value as written.
        separator: Semicolon or comma; escaped ones do not separate.
    """
    texts, at = [], 0
    while at <= len(value):
        piece = _PIECES[separator].match(value, at)
        assert piece is not None
        texts.append(plain(piece[0]))
        at = piece.end() + 1
    return texts


def content_lines(data: bytes, remarks: list[str]) -> Iterator[ContentLine]:
    """Yield the properties of a file.

    Args:
        data: Content of the file.
        remarks: List to which remarks on encodings are added.
    """
    data = _FOLD.sub(b"", data.removeprefix(b"\xef\xbb\xbf"))
    lines, recoded = iter(_LINE_END.split(data)), 0
    for line in lines:
        match = _NAME.match(line)
        if match is None:
            if line.strip():
                text, is_other = _decoded(line, "")
                recoded += is_other
                yield ContentLine("", text)
            continue
        parameters, at = _parameters(line, match.end())
        value = line[at + 1 :]
        encoding = next(iter(parameters.get("ENCODING", [])), "").upper()
        if encoding == "QUOTED-PRINTABLE":
            value = _quoted(value, lines)
        charset = next(iter(parameters.get("CHARSET", [])), "")
        text, is_other = _decoded(value, charset)
        recoded += is_other
        group = _GROUP.match(line)
        is_binary = encoding in ("B", "BASE64") or bool(_BINARY.match(text))
        yield ContentLine(
            match[1].decode().upper(), text, parameters, group[1].decode().lower() if group else "", is_binary
        )
    if recoded:
        remarks.append(f"lines that are not UTF-8 were read as windows-1252 ({recoded})")


def _parameters(line: bytes, at: int) -> tuple[dict[str, list[str]], int]:
    """Return the parameters from a place of a line on, and the place of the colon."""
    parameters: dict[str, list[str]] = {}
    while match := _PARAMETER.match(line, at):
        at = match.end()
        name = match[1].decode().upper()
        if match[2] is None:
            is_encoding = name in ("QUOTED-PRINTABLE", "BASE64")
            parameters.setdefault("ENCODING" if is_encoding else "TYPE", []).append(name)
            continue
        text = _CARET.sub(lambda mark: {"n": " ", "'": '"'}.get(mark[1], mark[1]), _decoded(match[2], "")[0])
        parameters.setdefault(name, []).append(text.replace('"', "") if text.startswith('"') else text)
    colon = line.find(b":", at)
    return parameters, colon if colon >= 0 else len(line)


def _quoted(value: bytes, lines: Iterator[bytes]) -> bytes:
    pieces = [value]
    while pieces[-1].endswith(b"=") and (piece := next(lines, None)) is not None:
        pieces[-1] = pieces[-1][:-1]
        pieces.append(piece)
    return quopri.decodestring(b"".join(pieces))


def _decoded(data: bytes, charset: str) -> tuple[str, bool]:
    """Return the text of bytes, and whether they are in no encoding that the line states."""
    encodings = (charset, "utf-8") if data.isascii() else ("utf-8", charset)
    for encoding in filter(None, encodings):
        try:
            if codecs.lookup(encoding).name not in _SLOW:
                return without_controls(data.decode(encoding).replace("\0", "")), False
        except (UnicodeError, LookupError):
            continue
    return without_controls(data.decode("windows-1252", "replace")), True
