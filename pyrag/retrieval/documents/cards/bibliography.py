"""Bibliographies (`.bib`), one card for each publication, and the text between them.

`pybtex` and `bibtexparser` stop at the first fault of a file or need 3 MB more for accents. This module reads what it
can of a broken file, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pyrag.errors import DataError
from pyrag.retrieval.documents.cards.card import Card, listed
from pyrag.retrieval.documents.cards.latex import latex_text, verbatim_text
from pyrag.retrieval.documents.controls import without_controls
from pyrag.retrieval.documents.formats.number_formats import MONTHS

_ENTRY = re.compile(r"@[ \t]*(\w+)\s*([{(])")
_BRACE = re.compile(r"\\.|[{}()]|\n@[ \t]*\w+\s*[{(]", re.DOTALL)
_KEY = re.compile(r"\s*+([^,={}\"]*+)(?:,|$)")
_FIELD = re.compile(r"(?<![\w:.+-])([^\W\d][\w:.+-]*+)\s*+=\s*+")
_BARE = re.compile(r"[^\s,#{}\"]+")
_JOIN = re.compile(r"\s*#\s*")
_QUOTED = re.compile(r"\\.|[{}\"]", re.DOTALL)
_NAME_MARK = re.compile(r"\\.|[{}]|(?<!\s)\s+and\s+", re.IGNORECASE | re.DOTALL)
_LABELS = {
    "author": "Author", "editor": "Editor", "title": "Title", "journal": "Journal", "journaltitle": "Journal",
    "booktitle": "Book title", "year": "Year", "date": "Date", "address": "Place", "location": "Place", "doi": "DOI",
    "isbn": "ISBN", "issn": "ISSN", "url": "Website", "urldate": "Accessed", "eprint": "Preprint",
    "archiveprefix": "Archive", "howpublished": "Published as", "origdate": "Original date",
}  # fmt: skip
_WRITTEN_BY_PROGRAMS = re.compile(r"(?:file|owner|timestamp|groups|date-(?:added|modified)|bdsk-.*|__.*)")
_PEOPLE = frozenset(("author", "editor", "translator"))
_TEXTS = frozenset(("abstract", "note", "annote", "annotation", "review"))
_VERBATIM = frozenset(("url", "doi", "eprint"))
_FREE, _GROWTH = 1 << 20, 10  # characters that macros and cross-references may add, and times the size of the file
_FIELD_COST = 50  # characters as which an inherited field counts in addition


def bibliography_cards(text: str, name: str) -> Iterator[Card]:
    """Yield the publications of a bibliography; texts between them, and broken entries, as cards without labels.

    Args:
        text: Content of the file.
        name: Name of the file in messages.

    Raises:
        DataError: Macros or cross-references make the file grow as only a trap does.
    """
    text = without_controls(text)
    macros = _Macros(len(text), name)
    entries: list[Card | tuple[str, str, dict[str, str]]] = []
    at = 0
    while match := _ENTRY.search(text, at):
        _note(entries, text[at : match.start()])
        end, after = _end(text, match)
        kind, body = match[1].lower(), text[match.end() : end]
        if kind == "string":
            macros.values |= _fields(body, 0, macros)
        elif kind in ("comment", "preamble"):
            _note(entries, body)
        elif key := _KEY.match(body):
            fields = _fields(body, key.end(), macros)
            entries.append((kind, key[1].strip(), fields))
            if not fields:
                _note(entries, body[key.end() :])
        else:
            _note(entries, text[match.start() : after])
        at = after
    _note(entries, text[at:])
    fields_by_key = {entry[1].lower(): entry[2] for entry in entries if isinstance(entry, tuple)}
    for entry in entries:
        yield entry if isinstance(entry, Card) else _card(*entry, fields_by_key, macros)


class _Macros:
    """Abbreviations of a file, with a limit for all copies of texts: abbreviations of abbreviations grow without end.

    Attributes:
        values: Texts by their names in lower case.
    """

    def __init__(self, size: int, name: str) -> None:
        self.values = {name[:3].lower(): name for name in MONTHS}
        self._remaining = _FREE + _GROWTH * size
        self._name = name

    def text(self, name: str) -> str:
        """Return the text that a name abbreviates, or the name if it is unknown."""
        value = self.values.get(name.lower(), name)
        self.count(len(value))
        return value

    def count(self, characters: int) -> None:
        """Count characters of a copy.

        Raises:
            DataError: All copies together are far longer than the file.
        """
        self._remaining -= characters
        if self._remaining < 0:
            raise DataError(
                f"the macros or cross-references of {self._name} make it more than {_GROWTH} times as long, "
                "as only a trap does: leave it out"
            )


def _note(entries: list[Card | tuple[str, str, dict[str, str]]], text: str) -> None:
    if text.strip(" \t\r\n,%"):
        entries.append(Card(texts=[("", text.strip())]))


def _end(text: str, entry: re.Match[str]) -> tuple[int, int]:
    """Return the end of an entry's content, and the place after the entry. A new line with an entry also ends it."""
    opens, closes = ("{", "}") if entry[2] == "{" else ("(", ")")
    depth = 1
    for mark in _BRACE.finditer(text, entry.end()):
        if mark[0][0] == "\n":
            return mark.start(), mark.start() + 1
        depth += (mark[0] == opens) - (mark[0] == closes)
        if depth == 0:
            return mark.start(), mark.end()
    return len(text), len(text)


def _fields(body: str, at: int, macros: _Macros) -> dict[str, str]:
    fields: dict[str, str] = {}
    while match := _FIELD.search(body, at):
        pieces: list[str] = []
        at = match.end()
        while True:
            piece, at = _value(body, at, macros)
            pieces.append(piece)
            join = _JOIN.match(body, at)
            if join is None:
                break
            at = join.end()
        fields.setdefault(match[1].lower(), "".join(pieces))
    return fields


def _value(body: str, at: int, macros: _Macros) -> tuple[str, int]:
    """Return one piece of a value, and the place after it."""
    first = body[at : at + 1]
    if first not in ("{", '"'):
        match = _BARE.match(body, at)
        return (macros.text(match[0]), match.end()) if match else ("", at + 1)
    depth = 0
    for mark in _QUOTED.finditer(body, at + (first == '"')):
        depth += (mark[0] == "{") - (mark[0] == "}")
        is_end = depth == 0 and mark[0] == ("}" if first == "{" else '"')
        if is_end:
            return body[at + 1 : mark.start()], mark.end()
    return body[at + 1 :], len(body)


def _card(
    kind: str, key: str, fields: dict[str, str], others: Mapping[str, Mapping[str, str]], macros: _Macros
) -> Card:
    parent = others.get(fields.get("crossref", "").strip().lower(), {})
    if parent:
        macros.count(sum(_FIELD_COST + len(value) for value in parent.values()))
        times = {"year", "month", "date"}
        dropped = times if times & fields.keys() else set()
        inherited = {name: value for name, value in parent.items() if name not in dropped}
        fields = {"booktitle" if name == "title" else name: value for name, value in inherited.items()} | fields
    card = Card(latex_text(fields.get("title", "")) or key)
    card.add("Title", latex_text(fields.get("title", "")))
    for name, value in sorted(fields.items(), key=lambda item: item[0] not in ("author", "year", "date")):
        if name == "title" or _WRITTEN_BY_PROGRAMS.fullmatch(name):
            continue
        label = _LABELS.get(name, name.capitalize())
        read = _people if name in _PEOPLE else verbatim_text if name in _VERBATIM else latex_text
        text = read(value)
        if name in _TEXTS:
            card.texts.append((label, text))
        else:
            card.add(label, text)
    card.add("Type", kind)
    card.add("Key", key)
    date = latex_text(fields.get("date", ""))
    year = re.match(r"\d{4}", latex_text(fields.get("year", "")) or date)
    if year:
        card.metadata["year"] = int(year[0])
        if "year" not in fields:
            card.add("Year", year[0])
    return card


def _people(text: str) -> str:
    """Return names in the order in which they are spoken, joined as in a sentence."""
    names = [_in_order(name) for name in _outside_braces(text)]
    names = ["others" if name.lower() == "others" else name for name in names if name]
    return listed(names)


def _outside_braces(text: str) -> Iterable[str]:
    """Split names at the word "and" outside of braces."""
    start = depth = 0
    for match in _NAME_MARK.finditer(text):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth <= 0 and match[0][0].isspace():
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _in_order(name: str) -> str:
    if name.strip().startswith("{") and name.strip().endswith("}"):
        return latex_text(name)
    parts = [latex_text(part) for part in name.split(",")]
    if len(parts) == 1:
        return parts[0]
    family, *middle, first = parts
    return " ".join(filter(None, (first, family, *middle)))
