"""Reasons why a filter matches nothing: a field that no passage has, a value of another kind, a date as text.

Only comparisons that no passage passes are explained. The sentences only mention fields and values of passages that the
caller may see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import compress, islice

from pyrag._io.threads import Stop, never
from pyrag.retrieval.filters.columns import Column, Mask, MetadataColumns, Rows, in_all, passes_any
from pyrag.retrieval.filters.tree import (
    Comparison,
    Conjunction,
    Containment,
    Disjunction,
    Existence,
    Filter,
    Membership,
    Scalar,
    comparisons_of,
    value_text,
)

ABOUT_FILTER = "the filter "
"""Beginning of each sentence on a filter."""

_MAX_SENTENCES = 5
_MAX_FIELDS = 20
_MAX_COMPARED = 1000  # names that are searched for a similar one
_MAX_VALUES = 5
_SAMPLE = 200  # values that are examined
_MAX_SHOWN = 60  # characters of a value or a name
_KINDS = {"text": "texts", "number": "numbers", "truth": "true and false", "list": "lists"}
_ISO = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[T ].*)?)?)?", re.DOTALL)
_DAY = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}")
_MONTH = re.compile(r"(?:\d.*)?\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """Verdict on a filter before a search.

    Attributes:
        sentences: Reasons why the filter, or a part of it, matches nothing.
        mismatched: Whether the filter's fields or kinds of values exclude every passage.
    """

    sentences: tuple[str, ...] = ()
    mismatched: bool = False


NOTHING_TO_SAY = FilterVerdict()


@dataclass(frozen=True, slots=True)
class _Finding:
    sentence: Callable[[], str]
    mismatched: bool = False


def judge(where: Filter, columns: MetadataColumns, within: Filter | None = None, stop: Stop = never) -> FilterVerdict:
    """Judge a filter before a search.

    Args:
        where: The filter.
        columns: Metadata of the index.
        within: Filter for the passages that the caller may see. None for all.
        stop: Signal that nobody waits for the verdict any more.
    """
    visible = None if within is None else columns.mask(within, stop)
    if not columns.terms or (visible is not None and not passes_any(visible)):
        return NOTHING_TO_SAY
    judging = _Judging(columns, visible, stop)
    leaves = list({str(leaf): leaf for leaf in comparisons_of(where)}.values())
    findings = {str(leaf): finding for leaf in leaves if (finding := judging.finding(leaf)) is not None}
    sentences = [finding.sentence() for finding in islice(findings.values(), _MAX_SENTENCES)]
    if not findings and not passes_any(judging.passing(where)):
        sentences = [f"{ABOUT_FILTER}passes no passage: each of its comparisons passes some, but none passes them all"]
    return FilterVerdict(tuple(sentences), _is_mismatched(where, findings))


def _is_mismatched(where: Filter, findings: dict[str, _Finding]) -> bool:
    if isinstance(where, Conjunction):
        return any(_is_mismatched(part, findings) for part in where.parts)
    if isinstance(where, Disjunction):
        return all(_is_mismatched(part, findings) for part in where.parts)
    finding = findings.get(str(where))
    return finding is not None and finding.mismatched


@dataclass(frozen=True)
class _Judging:
    """Judgement of a filter, over the metadata and the rows that the caller may see."""

    columns: MetadataColumns
    visible: Mask | None
    stop: Stop

    def passing(self, where: Filter) -> Mask:
        mask = self.columns.mask(where, self.stop)
        return mask if self.visible is None else in_all(mask, self.visible)

    def finding(self, leaf: Filter) -> _Finding | None:
        """Return why a comparison matches nothing or compares wrongly; None if it has no fault."""
        assert not isinstance(leaf, Conjunction | Disjunction)
        passes = passes_any(self.passing(leaf))
        unknown = _Finding(partial(self._unknown, leaf.field), True)
        if isinstance(leaf, Existence):
            return None if passes or not leaf.present else unknown
        column = self.columns.columns([leaf.field], self.stop).get(leaf.field)
        if column is None or not len(self._seen(column.rows)):
            return unknown
        value = leaf.values[0] if isinstance(leaf, Membership) else leaf.value
        unordered = self._unordered(leaf, column, value)
        if passes or unordered is not None:
            return unordered
        examples = self._examples(leaf, column)
        kind = _kind_word(value)
        if kind not in examples:
            return _Finding(partial(_mismatch, leaf, value, examples), True)
        return _Finding(partial(self._absent, leaf, column, kind))

    def _absent(self, leaf: Filter, column: Column, kind: str) -> str:
        values = self._range(column) if kind == "numbers" else f"are {_listed(self._some(column, kind))}"
        return f"{ABOUT_FILTER}finds nothing: no passage has {_shortened(str(leaf))}; its values {values}"

    def _unknown(self, name: str) -> str:
        names = self._names
        known = f"the fields are {', '.join(map(_shown, names[:_MAX_FIELDS]))}" if names else "there are no fields"
        if len(names) > _MAX_FIELDS:
            known += f" and {len(names) - _MAX_FIELDS} more"
        near = {field.casefold(): field for field in names[:_MAX_COMPARED]}
        similar = [near[match] for match in get_close_matches(name.casefold(), near, n=2)]
        suggestion = f"did you mean {' or '.join(map(_shown, similar))}? " if similar else ""
        return f"{ABOUT_FILTER}names the field {_shown(name)}, which no passage has: {suggestion}{known}"

    @cached_property
    def _names(self) -> list[str]:
        """Names of the fields that the caller may see, most frequent first."""
        counts: dict[str, int] = {}
        for metadata in self.columns.rows(self.visible, self.stop):
            for name in metadata:
                counts[name] = counts.get(name, 0) + 1
        return sorted(counts, key=lambda name: (-counts[name], name))

    def _seen(self, rows: Rows) -> Sequence[int]:
        """Return the positions in an array of rows that the caller may see."""
        places = range(len(rows))
        return places if self.visible is None else list(compress(places, map(self.visible.__getitem__, rows)))

    def _examples(self, leaf: Filter, column: Column) -> dict[str, Scalar]:
        """Return a value of each kind that the field has; for `contains`, elements of lists count."""
        sources = (column.single, column.elements) if isinstance(leaf, Containment) else (column.single,)
        examples: dict[str, Scalar] = {}
        for source in sources:
            for values in source.values():
                for place in self._seen(values.rows)[:1]:
                    examples.setdefault(_kind_word(values.values[place]), values.values[place])
        if not isinstance(leaf, Containment):
            for values in column.elements.values():
                for place in self._seen(values.rows)[:1]:
                    examples.setdefault("lists", values.values[place])
        return examples

    def _some(self, column: Column, kind: str) -> list[Scalar]:
        """Return a few distinct values of a kind, from a sample."""
        some: dict[Scalar, None] = {}
        for source in (column.single, column.elements):
            for values in source.values():
                if values.values and _kind_word(values.values[0]) == kind:
                    seen = self._seen(values.rows)
                    some.update(dict.fromkeys(values.values[place] for place in seen[:: len(seen) // _SAMPLE + 1]))
        return list(islice(some, _MAX_VALUES + 1))

    def _range(self, column: Column) -> str:
        columns_of_values = [source["number"] for source in (column.single, column.elements) if "number" in source]
        places = [(values.values, self._seen(values.rows)) for values in columns_of_values]
        ends = [values[seen[end]] for values, seen in places if len(seen) for end in (0, -1)]
        return f"go from {value_text(min(ends))} to {value_text(max(ends))}"

    def _unordered(self, leaf: Filter, column: Column, value: Scalar) -> _Finding | None:
        """Return a finding about dates that are compared as texts but are not in the order of their texts."""
        if not isinstance(leaf, Comparison) or leaf.operator in ("=", "!=") or not isinstance(value, str):
            return None
        texts = [example for example in self._some(column, "texts") if isinstance(example, str)]
        dates = [text for text in (*texts, value) if _is_date(text) and not _ISO.fullmatch(text)]
        if not dates or not any(map(_is_date, texts)):
            return None
        return _Finding(partial(_by_characters, leaf.field, dates[0]))


def _by_characters(name: str, date: str) -> str:
    return (
        f"{ABOUT_FILTER}compares {_shown(name)} by characters, which does not order dates such as {_shown(date)}: "
        'only dates such as "2024-05-31" can be compared by < and >'
    )


def _mismatch(leaf: Comparison | Membership | Containment, value: Scalar, examples: dict[str, Scalar]) -> str:
    """Return a sentence about a value of a kind that the field does not have."""
    kinds = [f"{kind} such as {_value(example)}" for kind, example in examples.items()]
    compared = f"{ABOUT_FILTER}compares {_shown(leaf.field)} with {_an(value)} {_value(value)}"
    cure = _cure(leaf, value, examples)
    return f"{compared}, and its values are {' and '.join(kinds)}{cure}"


def _cure(leaf: Comparison | Membership | Containment, value: Scalar, examples: dict[str, Scalar]) -> str:
    field = _shown(leaf.field, quoted=False)
    operator = leaf.operator if isinstance(leaf, Comparison) else "contains" if isinstance(leaf, Containment) else "in"
    if "lists" in examples:
        return f": write {field} contains {_value(examples['lists'])}"
    if isinstance(text := examples.get("texts"), str):
        if _ISO.fullmatch(text) and len(text) > 4:
            comparison = _of_year(field, operator, value) or f"{field} {operator} {_value(text)}"
            return f": these are dates kept as texts, so compare them with a text, {comparison}"
        if _is_date(text):
            return ": these are dates kept as texts, which only = and in can find; write them as 2024-05-31 to compare"
        return f": put the value in quotes, {_value(str(value))}"
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d+(?:\.\d+)?|true|false", value.strip().lower()):
        return f": write {value.strip()} without quotes"
    if isinstance(value, str) and _is_date(value) and (year := re.search(r"\d{4}", value)):
        return f": compare it with a number, such as {year[0]}"
    return ""


def _of_year(field: str, operator: str, year: Scalar) -> str:
    """Return a comparison of ISO dates that means a comparison with a year; empty if the number is not a year."""
    if isinstance(year, bool) or not isinstance(year, int | float) or year % 1 or not 1000 <= year < 9999:
        return ""
    start, end = f'"{year:.0f}"', f'"{year + 1:.0f}"'
    return {
        "=": f"{field} >= {start} and {field} < {end}",
        "!=": f"{field} < {start} or {field} >= {end}",
        ">=": f"{field} >= {start}",
        ">": f"{field} >= {end}",
        "<": f"{field} < {start}",
        "<=": f"{field} < {end}",
    }.get(operator, "")


def _is_date(text: str) -> bool:
    short = text[:_MAX_SHOWN].strip()
    return any(form.fullmatch(short) for form in (_ISO, _DAY, _MONTH))


def _kind_word(value: Scalar) -> str:
    return "true and false" if isinstance(value, bool) else "texts" if isinstance(value, str) else "numbers"


def _an(value: Scalar) -> str:
    return "the truth" if isinstance(value, bool) else "the text" if isinstance(value, str) else "the number"


def _listed(values: list[Scalar]) -> str:
    more = ", …" if len(values) > _MAX_VALUES else ""
    return ", ".join(map(_value, values[:_MAX_VALUES])) + more


def _value(value: Scalar) -> str:
    return _shortened(value_text(value))


def _shown(name: str, *, quoted: bool = True) -> str:
    """Return the name of a field as one line."""
    plain = _shortened("".join(character if character.isprintable() else " " for character in name))
    return repr(plain) if quoted else plain


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
