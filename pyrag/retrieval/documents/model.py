"""Data model of documents: files or members of archives, and passages with their places."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from pyrag._io import plugins
from pyrag.trace.model import Passage

MARK = "pyrag-index.json"  # the file that makes a folder an index
MAX_LINE = 32 << 20  # bytes of a line of JSON or CSV, or of one element of a JSON file
MAX_WHOLE = 64 << 20  # bytes of a document that can only be read as a whole
ZERO_BYTE = "not text (a zero byte): save the file as UTF-8 text"
COMPRESSED = (".gz", ".bz2", ".xz")
ARCHIVE = ".zip"
PACKED = frozenset({ARCHIVE, ".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar"})  # archives that may be left unread
TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
PLAIN = (
    ".txt",
    ".text",
    ".log",
    ".rst",
    ".adoc",
    ".org",
    ".tex",
    ".srt",
    ".vtt",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
)
CARDS = (".ics", ".vcf", ".bib")
WORD = (".docx", ".docm", ".dotx")
MAIL = (".eml", ".mbox")
PROSE = (*PLAIN, *CARDS, *WORD, *MAIL, ".md", ".markdown", ".html", ".htm", ".xhtml", ".pdf", ".ipynb", ".odp")
SUFFIXES = TABLES + PROSE
_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OFFICE = {  # read by the extra `office`
    **dict.fromkeys((".pptx", ".pptm", ".ppsx"), _SLIDES),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx"), _SHEETS),
    ".xls": "application/vnd.ms-excel",
    ".doc": "application/msword",
    **dict.fromkeys((".ppt", ".pps"), "application/vnd.ms-powerpoint"),
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".rtf": "application/rtf",
    ".epub": "application/epub+zip",
}
KNOWN = ".jsonl, .json, .csv, .tsv, .txt, .md, .html, .pdf or .docx, also .gz, .bz2, .xz or in a .zip"


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of CSV and TSV files that hold a passage, and the encoding of text files that are not UTF-8.

    Only the text column is required. If `text` is `*`, each whole row is a passage; the same applies to a table in a
    folder that lacks the text column, unless the user named other columns. `encoding` is a result of
    `checked_encoding`, or empty.
    """

    id: str = "id"
    title: str = "title"
    text: str = "text"
    encoding: str = ""

    @property
    def are_default(self) -> bool:
        return (self.id, self.title, self.text) == ("id", "title", "text")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size and time of a file, known without reading it. For a member of an archive, `mtime` is its checksum."""

    size: int
    mtime: int  # nanoseconds


@dataclass(frozen=True, slots=True)
class Document:
    """File to read or, if `member` is set, a file in an archive. The ids of its passages start with `key`.

    `is_named` is True if the user named this file, and False if it was found in a folder. `shown`, if not empty, is the
    path that messages and passages use.
    """

    path: Path
    key: str
    stamp: Stamp
    member: str = ""
    is_named: bool = True
    shown: str = ""

    @property
    def name(self) -> str:
        """Name in messages and passages, which is valid text even if the file system's name is not."""
        path = self.shown or str(self.path)
        return utf8(f"{path}!/{self.member}" if self.member else path)

    @property
    def kind(self) -> str:
        return kind(self.member or self.path.name)

    @property
    def compression(self) -> str:
        suffix = Path(self.member or self.path.name).suffix.lower()
        return suffix if suffix in COMPRESSED else ""

    @property
    def title(self) -> str:
        """Title for prose that has none: words made from the file's name."""
        name = (self.member or self.path.name).rpartition("/")[2].encode("utf-8", "replace").decode()
        return name.removesuffix(self.compression).rpartition(".")[0].replace("_", " ")


@dataclass(frozen=True, slots=True)
class Placed:
    """Passage with its line (0 for the whole file), and whether its id comes from the document."""

    passage: Passage
    document: Document
    line: int
    own_id: bool

    @property
    def place(self) -> str:
        return at(self.document, self.line)


def kind(name: str) -> str:
    """Return the suffix that determines the reader of a file, without the suffix of its compression."""
    suffix = Path(name).suffix.lower()
    return Path(name).with_suffix("").suffix.lower() if suffix in COMPRESSED else suffix


def is_read(suffix: str) -> bool:
    """Return True if pyrag or an installed package reads files with a suffix."""
    if suffix in OFFICE:
        return find_spec("xberg") is not None or suffix.removeprefix(".") in plugins.names("documents")
    return suffix in SUFFIXES or (suffix != "" and suffix.removeprefix(".") in plugins.names("documents"))


def ending(name: str) -> str:
    """Return the kind of a file in the form for messages."""
    return kind(name)[:20] or "without an ending"


def at(document: Document, line: int) -> str:
    """Return a place for messages.

    Args:
        document: The document.
        line: Line number from 1; 0 for the whole document.
    """
    return f"{document.name} line {line}" if line else document.name


def utf8(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def digest(title: str, text: str, metadata: str = "") -> str:
    """Return the hash at the end of the ids of passages without their own id.

    Args:
        title: Title of the passage.
        text: Text of the passage.
        metadata: Metadata of the passage as JSON, if passages may differ only in metadata.
    """
    content = f"{title}\0{text}\0{metadata}" if metadata else f"{title}\0{text}"
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def with_distinct_id(passage: Passage) -> Passage:
    """Return a passage with its hash appended to its id, because another passage has the same id."""
    from pyrag.retrieval.filters.metadata import encoded

    return replace(passage, id=f"{passage.id}#{digest(passage.title, passage.text, encoded(passage.metadata))}")


def split_contents(contents: str, title: str = "") -> tuple[str, str]:
    """Split Search-R1's one-field form of a passage: the title in quotes on the first line, then the text.

    Args:
        contents: The field.
        title: Title from another field, which takes precedence over the title in `contents`.

    Returns:
        Title (may be empty) and text.
    """
    first, _, rest = contents.partition("\n")
    if rest.strip() and len(first) > 2 and first[0] == first[-1] == '"':
        return title or first[1:-1].strip(), rest.strip()
    return title, contents.strip()
