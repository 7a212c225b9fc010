"""Properties that a document states about itself: its title, authors, date and the like.

One rule holds for all formats. The title is the document's title. Authors, contributors, subject, keywords,
description, category, publisher, date and language, and the fields that a user defined, become metadata. The date is
the date of publication or else of creation. What programs write on their own (names of
programs, revisions, times of changes) is not read.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

MAX_PART = 1 << 20  # bytes of the part of a packed document that holds its properties
_LISTS = ("author", "contributor", "keywords", "subject")  # which may have several values
_NAMES = {
    "creator": "author",
    "initial-creator": "author",
    "keyword": "keywords",
    "creation-date": "created",
    "creationdate": "created",
    "published_time": "date",
    "date.issued": "date",
    "pubdate": "date",
    "publish_date": "date",
    "issued": "date",
    "publication_date": "date",
    "site_name": "publisher",
    "tag": "keywords",
    "created": "created",
    **{name: name for name in ("author", "keywords", "subject", "description", "category", "publisher", "date",
                               "language", "contributor", "title")},
}  # fmt: skip
_PREFIX = re.compile(r"^(?:.*:)?(?:(?:dc|dcterms)\.|citation_)?")  # of names in pages
_FILLED_IN = re.compile(  # by programs, if the author wrote nothing
    r"\W*(?:anonymous|unspecified|untitled(?: document)?|unknown|python-docx|openpyxl|powerpoint presentation"
    r"|word document|document\d*|title|generated (?:by|using) python-\w+)\W*",
    re.IGNORECASE,
)
_FILE_TITLE = re.compile(
    r"(?:Microsoft (?:Word|Excel|PowerPoint) - )?(.*?)(?:\.(?:docx?|xlsx?|pptx?|odt|rtf|tex|indd))?"
)
_OWN_FIELD = re.compile(  # the others are written by programs
    r"(?!_|MSIP_|ContentTypeId|KSOProductBuildVer|ICV$|AppVersion|DocSecurity|HyperlinksChanged|LinksUpToDate|ScaleCrop"
    r"|ShareDoc)(?=.*[^\W\d_])"
)
_PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?")
_ROOT_FILE = re.compile(rb"full-path\s*=\s*[\"']([^\"']+)[\"']")
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, zlib.error, ET.ParseError)
_MAX_OWN = 30


@dataclass(frozen=True, slots=True)
class Properties:
    """Title of a document, which may be empty, and its other properties by name."""

    title: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)


def properties_of(pairs: Iterable[tuple[str, object]]) -> Properties:
    """Return properties from pairs of name and value. Names of all formats are known; other pairs are ignored."""
    stated: dict[str, dict[str, None]] = defaultdict(dict)
    for name, value in pairs:
        key = _NAMES.get(_PREFIX.sub("", name.strip().lower()))
        text = " ".join(str(value or "").split())
        if key and text and not _FILLED_IN.fullmatch(text):
            stated[key][text] = None
    values = {key: list(texts) for key, texts in stated.items()}
    if keywords := values.get("keywords"):
        words = (word.strip() for text in keywords for word in re.split("[,;]", text))
        values["keywords"] = list(dict.fromkeys(filter(None, words)))
    created = values.pop("created", [])
    if dates := values.pop("date", created):
        values["date"] = [_day(dates[0])]
    title = next(iter(values.pop("title", [])), "")
    match = _FILE_TITLE.fullmatch(title)
    fields = {name: texts if name in _LISTS and len(texts) > 1 else texts[0] for name, texts in values.items() if texts}
    return Properties(match[1].strip() if match else title, fields)


def _day(text: str) -> str:
    """Return a date without its time, in ISO format if it is a date of a PDF; other texts stay as they are."""
    if match := _PDF_DATE.match(text):
        return "-".join(filter(None, match.groups()))
    return text.partition("T")[0] if re.match(r"\d{4}-\d\d-\d\dT", text) else text


def packed_properties(data: bytes) -> Properties:
    """Return the properties of a packed document: an Office file, an OpenDocument file or a book.

    Args:
        data: Content of the file. A broken file has no properties.
    """
    if not data.startswith(b"PK"):
        return Properties()
    with suppress(*_BROKEN):
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = [part for name in _parts(archive) if (part := _part(archive, name)) is not None]
            roots = [ET.fromstring(part) for part in parts]  # noqa: S314 (expat limits the expansion of entities)
        pairs = [pair for root in roots for pair in _pairs(root)]
        own = {name: value for root in roots for name, value in _own_fields(root)}
        properties = properties_of(pairs)
        return Properties(properties.title, {**dict(list(own.items())[:_MAX_OWN]), **properties.fields})
    return Properties()


def _parts(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the names of the parts that may hold properties."""
    yield from ("docProps/core.xml", "docProps/custom.xml", "meta.xml")
    container = _part(archive, "META-INF/container.xml")
    if container and (match := _ROOT_FILE.search(container)):
        yield match[1].decode("utf-8", "replace")


def _part(archive: zipfile.ZipFile, name: str) -> bytes | None:
    if name not in archive.NameToInfo:
        return None
    with archive.open(name) as part:
        data = part.read(MAX_PART + 1)
    return data if len(data) <= MAX_PART else None


def _pairs(root: ET.Element) -> Iterator[tuple[str, object]]:
    """Yield the elements of a part by their names without namespaces."""
    pairs = [(str(element.tag).rpartition("}")[2].lower(), element.text) for element in root.iter()]
    if str(root.tag).endswith("}document-meta"):  # of OpenDocument, whose date and creator are of the last change
        has_author = any(name == "initial-creator" and text for name, text in pairs)
        pairs = [(name, text) for name, text in pairs if name != "date" and (name != "creator" or not has_author)]
    yield from pairs


def _own_fields(root: ET.Element) -> Iterator[tuple[str, str]]:
    """Yield the fields that a user defined."""
    for element in root.iter():
        tag = str(element.tag).rpartition("}")[2]
        is_own = tag == "user-defined" or (tag == "property" and "custom-properties" in str(element.tag))
        name = next((value for key, value in element.items() if key.rpartition("}")[2] == "name"), "") if is_own else ""
        texts = [element.text, *(inner.text for inner in element)] if is_own else []
        text = " ".join("".join(filter(None, texts)).split())
        if text and _OWN_FIELD.match(name):
            yield name, text


def converted_properties(metadata: Any) -> Properties:
    """Return the properties in the result of the converter `xberg`.

    Args:
        metadata: Metadata of its result.
    """
    pairs: list[tuple[str, object]] = [("title", metadata.title), ("subject", metadata.subject)]
    pairs += [("author", name) for name in metadata.authors or ()]
    pairs += [("keywords", word) for word in metadata.keywords or ()]
    pairs += [("language", metadata.language), ("created", metadata.created_at), ("category", metadata.category)]
    return properties_of(pairs)
