"""Cards: contacts, events and publications, each with fields of the form `Label: value`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyrag.retrieval.documents.chunking import MAX_UNITS, Chunk, chunks, units

_MAX_FIELDS = 8 * MAX_UNITS  # units of the fields that are kept in one passage


@dataclass(slots=True)
class Card:
    """Contact, event or publication.

    Attributes:
        title: Name of the person, the event or the publication.
        fields: Labels and values, in order.
        texts: Labels and values of running texts, such as notes.
        metadata: Fields that filters compare, such as dates.
    """

    title: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    metadata: dict[str, object] = field(default_factory=dict)

    def add(self, label: str, value: str) -> None:
        """Add a field, unless its value is empty or the card has it already.

        Args:
            label: Readable name, such as `Phone (work)`.
            value: Value on one line.
        """
        near = self.fields[-20:]  # comparing with all of them would take quadratic time
        if value.strip() and (label, value) not in near:
            self.fields.append((label, value))

    def chunks(self, name: str, at: int) -> Iterator[Chunk]:
        """Yield the passages of the card: one with its fields, and more for long running texts.

        Args:
            name: Title of a card without one.
            at: Position of the card in the text of its file.
        """
        title = self.title or name
        fields, texts = _lines(self.fields), _lines(self.texts)
        whole = f"{fields}{texts}"
        if units(whole) <= MAX_UNITS:
            fields, texts = whole, ""
        if units(fields) > _MAX_FIELDS:
            fields, texts = "", f"{fields}\n{texts}"
        if fields:
            yield Chunk(title, fields.rstrip("\n"), at, at + len(fields) - 1)
        at += len(fields)
        for chunk in chunks(texts.splitlines(keepends=True), title, markdown=False):
            yield Chunk(title, chunk.text, at + chunk.start, at + chunk.end)


def _lines(fields: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{label}: {value}\n" if label else f"{value}\n" for label, value in fields)


def listed(names: Sequence[str]) -> str:
    """Return names as in a sentence: "a", "a and b" or "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def length(card: Card) -> int:
    """Return the number of characters of a card in the text of its file."""
    return len(_lines(card.fields)) + len(_lines(card.texts)) + 1
