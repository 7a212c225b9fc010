"""Items of `each`, and the question that is asked about each of them."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.episode.corpus.catalogue import MAX_DOCUMENTS
from pyrag.episode.program_run import ProgramRun
from pyrag.episode.program_values import UNKNOWN_ERROR, check_query, is_passage, kind_of, plain
from pyrag.trace.model import Passage, shorten
from pyrag_sandbox import PrimitiveError, Record, Text

_EXAMPLE = 'as in each(names, "When was {item} founded?")'
_MAX_NAME = 120  # characters of an item's name


@dataclass(frozen=True, slots=True)
class CorpusItem:
    """Item of `each`.

    Attributes:
        name: Name in rows and messages.
        fields: Values of the question's fields, by name.
        document: Id of the document to answer from; empty for other items.
        passages: Passages of an item that is a passage; None for other items.
        unknown: Names of fields whose value is an unknown answer.
    """

    name: str
    fields: Mapping[str, Any]
    document: str = ""
    passages: tuple[Passage, ...] | None = None
    unknown: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_read(self) -> bool:
        """True for an item with a text of its own, False for one that must be searched for."""
        return bool(self.document) or self.passages is not None


def is_document(value: Any) -> bool:
    """Return True for a record that `documents` returned."""
    return isinstance(value, Record) and "passages" in value.fields and not is_passage(value)


def items_of(program_run: ProgramRun, values: Any) -> list[CorpusItem]:
    """Return the items of a program's argument.

    Args:
        program_run: The program's run, which knows the passages it received.
        values: The argument.

    Raises:
        PrimitiveError: The argument is not a list of documents, passages, texts, dicts or rows, or it is too long.
    """
    if not isinstance(values, list | tuple):
        raise PrimitiveError(f"each() needs a list of items, not {kind_of(values)}", "TypeError")
    if len(values) > MAX_DOCUMENTS:
        raise PrimitiveError(
            f"each() takes at most {MAX_DOCUMENTS:,} items, and there are {len(values):,}: call it for parts of them"
        )
    return [_item(program_run, value, position) for position, value in enumerate(values)]


def _item(program_run: ProgramRun, value: Any, position: int) -> CorpusItem:
    if isinstance(value, str | Text):
        text = value.text if isinstance(value, Text) else value
        if isinstance(value, Text) and value.absent is not None:
            raise PrimitiveError(
                f"item {position} of each() is an unknown answer: leave it out with is_known(…)", UNKNOWN_ERROR
            )
        return CorpusItem(shorten(text, _MAX_NAME), {"item": text})
    if isinstance(value, Record):
        return _of_record(program_run, value)
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        name = next((text for text in value.values() if isinstance(text, str) and text.strip()), str(plain(value)))
        return CorpusItem(shorten(name, _MAX_NAME), value, unknown=_unknown(value))
    raise PrimitiveError(
        f"each() takes documents, passages, texts and dicts with texts as keys, but item {position} is "
        f"{kind_of(value)}: make texts of them with str()",
        "TypeError",
    )


def _of_record(program_run: ProgramRun, record: Record) -> CorpusItem:
    fields = record.fields
    if is_document(record):
        own = {name: fields[name] for name in ("id", "title", "source")}
        name = str(fields["title"] or fields["id"])
        return CorpusItem(shorten(name, _MAX_NAME), {**fields["metadata"], **own, "item": name}, str(fields["id"]))
    if is_passage(record):
        passages = tuple(program_run.passages_of([record]))
        own = {name: fields[name] for name in ("id", "title", "text")}
        return CorpusItem(
            shorten(passages[0].title or passages[0].id, _MAX_NAME), {**own, "item": fields["title"]}, passages=passages
        )
    return CorpusItem(shorten(str(fields.get("item", "")), _MAX_NAME), fields, unknown=_unknown(fields))


def _unknown(fields: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, value in fields.items() if isinstance(value, Text) and value.absent is not None)


@dataclass(frozen=True, slots=True)
class Template:
    """Question with fields in braces, as alternating texts and field names. Without fields, it is a plain question."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, question: Any) -> Template:
        """Parse the template in a program's argument. Raises `PrimitiveError` if it is malformed."""
        text = check_query(question, "each")
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise PrimitiveError(
                f"the question of each() has a wrong field ({error}): write {{{{ for a brace"
            ) from None
        for _, name, form, conversion in parsed:
            if name is not None and (not name.strip() or form or conversion):
                raise PrimitiveError(
                    f"the question of each() has the field {{{name}}} with a format or without a name: write {{item}} "
                    "or the name of a field, and {{ for a brace"
                )
        return cls(tuple((literal, name) for literal, name, _, _ in parsed))

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.parts if name is not None)

    def filled(self, items: Sequence[CorpusItem]) -> list[str]:
        """Return the question of each item.

        Args:
            items: All items.

        Raises:
            PrimitiveError: An item lacks a field, an item's field is unknown, or a plain question is asked about items
                that have no text of their own.
        """
        if not self.fields and not all(item.is_read for item in items):
            raise PrimitiveError(
                f"each() asks a plain question only of documents and passages: write where the item goes, {_EXAMPLE}"
            )
        return [self._of(item) for item in items]

    def _of(self, item: CorpusItem) -> str:
        written: list[str] = []
        for literal, name in self.parts:
            written.append(literal)
            if name is not None:
                written.append(_value(item, name))
        return check_query("".join(written), "each")


def _value(item: CorpusItem, name: str) -> str:
    if name not in item.fields:
        known = ", ".join(f"{{{field}}}" for field in list(item.fields)[:20])
        raise PrimitiveError(f"the question of each() has the field {{{name}}}, which {item.name!r} lacks: use {known}")
    if name in item.unknown:
        raise PrimitiveError(
            f"the field {{{name}}} of {item.name!r} is an unknown answer: leave such items out with is_known(…)",
            UNKNOWN_ERROR,
        )
    value = item.fields[name]
    if isinstance(value, Record):
        raise PrimitiveError(f"the field {{{name}}} of {item.name!r} is a record: use one of its fields", "TypeError")
    shown = plain(value)
    return ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
