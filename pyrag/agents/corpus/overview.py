"""Overview of a corpus: number of documents, metadata fields with their values, folders and titles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.trace.model import shorten

Scalar = str | int | float | bool

MAX_VALUES = 1_000
"""Values of a field that an overview holds, the most frequent first."""

_MAX_FIELDS = 100
_MAX_TITLES = 1_000
_SHOWN_FIELDS, _SHOWN_VALUES, _SHOWN_TITLES = 20, 8, 5
_MAX_SHOWN = 40  # characters of a name, value or title in a prompt


@dataclass(frozen=True, slots=True)
class FieldOverview:
    """Metadata field of the documents.

    Attributes:
        documents: Number of documents that have the field.
        values: Values with the number of documents that have each, most frequent first; at most `MAX_VALUES`.
        distinct: Number of different values.
        listed: Whether the values come from lists, so that filters test them with `contains`.
    """

    name: str
    documents: int
    values: tuple[tuple[Scalar, int], ...]
    distinct: int
    listed: bool = False

    @property
    def is_number(self) -> bool:
        """True if all values are numbers."""
        return bool(self.values) and all(is_number(value) for value, _ in self.values)


@dataclass(frozen=True, slots=True)
class DocumentOverview:
    """Title, source and metadata of a document; `fields` holds the fields whose values are scalars or lists of them."""

    title: str
    source: str
    fields: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class CorpusOverview:
    """Overview of the documents that a question may see.

    Attributes:
        total: Exact number of documents.
        seen: Number of documents that the other attributes describe, which is smaller for a very large corpus.
        folders: Folders, at any depth, of the documents' sources, with the number of documents in each.
        titles: Titles of the first documents.
        documents: The documents that the other attributes describe.
    """

    total: int = 0
    seen: int = 0
    fields: tuple[FieldOverview, ...] = ()
    folders: tuple[tuple[str, int], ...] = ()
    titles: tuple[str, ...] = ()
    documents: tuple[DocumentOverview, ...] = ()


def is_number(value: object) -> bool:
    """Return True for an int or float, but not for a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def overview_of(
    total: int, metadata: Iterable[Mapping[str, Any]], sources: Sequence[str], titles: Sequence[str]
) -> CorpusOverview:
    """Return the overview of documents.

    Args:
        total: Exact number of documents.
        metadata: Metadata of each document.
        sources: Source of each document.
        titles: Title of each document.
    """
    counts: dict[str, Counter[tuple[type, Scalar]]] = {}
    having: Counter[str] = Counter()
    listed: set[str] = set()
    metadata = list(metadata)
    for fields in metadata:
        for name, value in fields.items():
            values = list(value) if isinstance(value, list | tuple) else [value]
            if isinstance(value, list | tuple):
                listed.add(name)
            having[name] += 1
            count = counts.setdefault(name, Counter())
            count.update((type(item), item) for item in values if isinstance(item, Scalar))
    described = [
        FieldOverview(
            name,
            having[name],
            tuple((value, number) for (_, value), number in counts[name].most_common(MAX_VALUES)),
            len(counts[name]),
            name in listed,
        )
        for name, _ in having.most_common(_MAX_FIELDS)
    ]
    paths = [source.split("/")[:-1] for source in sources if "://" not in source]
    folders = Counter(name for path in paths for name in set(path) if name.strip("."))
    documents = tuple(
        DocumentOverview(title, source, tuple(_scalars(fields)))
        for title, source, fields in zip(titles, sources, metadata, strict=False)
    )
    return CorpusOverview(
        total,
        len(titles),
        tuple(described),
        tuple(folders.most_common(MAX_VALUES)),
        tuple(titles[:_MAX_TITLES]),
        documents,
    )


def _scalars(fields: Mapping[str, Any]) -> Iterable[tuple[str, Scalar | tuple[Scalar, ...]]]:
    for name, value in fields.items():
        if isinstance(value, list | tuple):
            yield name, tuple(item for item in value if isinstance(item, Scalar))
        elif isinstance(value, Scalar):
            yield name, value


def describe(overview: CorpusOverview) -> str:
    """Return the overview as lines of a prompt. Names, values and titles are shortened, since they may be any text."""
    lines = [f"There are {overview.total:,} documents."]
    if overview.seen < overview.total:
        lines[0] += f" The lines below describe the first {overview.seen:,}."
    if overview.fields:
        lines.append("Fields of their metadata, with the number of documents:")
        lines += [f"- {_cut(field.name)} ({field.documents:,}): {_values(field)}" for field in _shown(overview)]
        if (more := len(overview.fields) - _SHOWN_FIELDS) > 0:
            lines.append(f"- and {more} more fields")
    else:
        lines.append("They have no metadata.")
    if overview.folders:
        shown = ", ".join(f"{_cut(name)}/ ({number:,})" for name, number in overview.folders[:_SHOWN_VALUES])
        lines.append(f"Folders in .source: {shown}")
    titles = ", ".join(repr(_cut(title)) for title in overview.titles[:_SHOWN_TITLES])
    return "\n".join([*lines, f"First titles: {titles}"] if titles else lines)


def _shown(overview: CorpusOverview) -> Sequence[FieldOverview]:
    return overview.fields[:_SHOWN_FIELDS]


def _values(field: FieldOverview) -> str:
    if field.is_number and field.distinct > _SHOWN_VALUES:
        numbers = [value for value, _ in field.values]
        return f"numbers from {min(numbers)} to {max(numbers)}"
    shown = ", ".join(f"{_literal(value)} ({number:,})" for value, number in field.values[:_SHOWN_VALUES])
    more = field.distinct - min(len(field.values), _SHOWN_VALUES)
    kind = "lists of " if field.listed else ""
    return f"{kind}{shown}" + (f" and {more:,} more values" if more > 0 else "")


def _literal(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{_cut(value)}"' if isinstance(value, str) else str(value)


def _cut(text: str) -> str:
    return shorten(text, _MAX_SHOWN)
