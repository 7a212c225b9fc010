"""Metadata fields as numbers and dates, even if their values are texts such as "232,000 EUR"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pyrag.agents.corpus.overview import FieldOverview, is_number
from pyrag.agents.python_text import literal
from pyrag.embedded.planner.corpus.meaning import CorpusQuestion
from pyrag.embedded.planner.corpus.vocabulary import Vocabulary, is_time
from pyrag.retrieval.filters.tree import Comparison, Containment, Membership, comparisons_of
from pyrag_helpers import HELPERS
from pyrag_helpers.measures.amounts import read_amounts
from pyrag_helpers.measures.units import NO_UNIT

_AMOUNT = re.compile(r"(?P<before>[^\w\s]{0,3}|[A-Z]{3})\s?[-+−]?\d[\d.,'’ ]*\s?(?P<after>[^\W\d_]{0,12}|[%$€£¥])")


def number_expression(field: FieldOverview) -> str:
    """Return the Python expression over `doc` for a numeric field; empty for other values or mixed units."""
    value = f"doc.metadata[{literal(field.name)}]"
    if field.is_number:
        return value
    units: set[str] = set()
    for item, _ in field.values:
        match = _AMOUNT.fullmatch(str(item).strip())
        if isinstance(item, bool) or field.listed or match is None:
            return ""
        if not is_number(item):
            try:
                HELPERS["parse_number"](item)
            except ValueError:
                return ""
        units.add(f"{match['before'].strip(' +-−')}{match['after']}".casefold())
    return f"parse_number({value})" if field.values and len(units - {""}) <= 1 else ""


def has_unit(field: FieldOverview, text: str) -> bool:
    """Return False if an amount's unit differs from the field's unit: dollars if the field has euros.

    Args:
        field: The field.
        text: Words of a question that contain the amount.
    """
    units = {amount.unit for value, _ in field.values for amount, _ in read_amounts(str(value))} - {NO_UNIT}
    asked = {amount.unit for amount, _ in read_amounts(text)} - {NO_UNIT}
    return not units or asked <= units


def with_field(meaning: CorpusQuestion, field: FieldOverview) -> CorpusQuestion:
    """Return a meaning that computes over a field, or lists the field if its values cannot be compared or added.

    Args:
        meaning: A computation over a field.
        field: The field.
    """
    value = number_expression(field)
    is_sum = meaning.use in ("total", "average")
    if value or (is_time(field) and not is_sum):
        return replace(meaning, field=field.name, value=value)
    kinds = "numbers of one unit" if is_sum else "numbers of one unit, or dates"
    note = f"the values of the field {field.name!r} are not all {kinds}: all are listed"
    return CorpusQuestion("each", meaning.selection, field=field.name, note=note)


def left_out(meaning: CorpusQuestion, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield remarks on documents that a question may mean but that lack the metadata for selecting them.

    Args:
        meaning: The meaning of the question.
        vocabulary: Words of all documents' metadata.
    """
    selection = meaning.selection
    base = selection.base
    candidates = vocabulary.matching(base, selection.words)
    names = [
        condition.field
        for condition in (comparisons_of(selection.where) if selection.where else ())
        if isinstance(condition, Comparison | Containment | Membership)
    ]
    own = {condition.field for condition in (comparisons_of(base) if base else ()) if hasattr(condition, "field")}
    for name in dict.fromkeys((*names, *(test.field for test in selection.tests), meaning.field)):
        lacking = sum(name not in dict(document.fields) for document in candidates) if name and name not in own else 0
        if lacking:
            yield f"{lacking} of {len(candidates)} documents have no {name!r} in their metadata, and are left out"
    if own and not selection.words:
        others = len(vocabulary.matching(None, [selection.noun])) - len(vocabulary.matching(base, [selection.noun]))
        if others > 0:
            yield (
                f"{others} more documents have {selection.noun!r} in their title or path, and not in their metadata:"
                " they are left out"
            )
