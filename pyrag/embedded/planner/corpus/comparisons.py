"""Comparisons of metadata fields with numbers and values."""

from __future__ import annotations

import re

from pyrag.embedded.planner.corpus.fields import has_unit, number_expression
from pyrag.embedded.planner.corpus.meaning import MetadataTest
from pyrag.embedded.planner.corpus.vocabulary import Vocabulary, equal
from pyrag.retrieval.filters.tree import Comparison, Filter, Operator, all_of
from pyrag_helpers import HELPERS

NAME = r"[\"“']?[A-Z0-9][\w.&’'-]*(?:[ ](?:(?:of|and|the|de|von|van|&)[ ])*[A-Z0-9][\w.&’'-]*)*[\"”']?"
_DETERMINER = re.compile(r"(?:the|an?|any|its|their)\s+", re.IGNORECASE)
_BE_IS = r"(?:(?:is|are|was|were)\s+)?"
_MORE = rf"{_BE_IS}(?:more than|greater than|higher than|larger than|later than|above|over|after|exceeding|>)"
_LESS = rf"{_BE_IS}(?:less than|fewer than|lower than|smaller than|earlier than|below|under|before|<)"
_NOT_LESS = rf"{_BE_IS}(?:at least|not less than|no less than|from|since|>=)"
_NOT_MORE = rf"{_BE_IS}(?:at most|not more than|no more than|up to|until|<=)"
_IS = r"(?:is not|are not|was not|!=|other than|is|are|was|were|equals|equal to|being|of|=|:)"
_OPERATOR_NAMES: tuple[tuple[str, Operator], ...] = (
    (r"(?:is not|are not|was not|!=|(?:is |are )?other than)(?=[\s\"'])", "!="),
    (_NOT_LESS, ">="),
    (_NOT_MORE, "<="),
    (_MORE, ">"),
    (_LESS, "<"),
    (r"(?:(?:is|are|was|were|being|of) (?:equal to )?|equals? (?:to )?|exactly|=|: ?)", "="),
)
OPERATORS = tuple((re.compile(rf"{words}\s*(?=\S)", re.IGNORECASE), operator) for words, operator in _OPERATOR_NAMES)
OPERATOR_WORDS = rf"(?:{_IS}|{_MORE}|{_LESS}|{_NOT_LESS}|{_NOT_MORE})"
_LINK = re.compile(
    rf"(?:of|that is|which is|is|are|was|were)\s+(?=(?:{_MORE}|{_LESS}|{_NOT_LESS}|{_NOT_MORE})\s)", re.IGNORECASE
)
_COUNTED = re.compile(
    rf"^(?P<sign>{_MORE}|{_LESS}|{_NOT_LESS}|{_NOT_MORE}|exactly) (?P<number>\d[\d.,]*) (?P<name>[a-z][\w -]*)$",
    re.IGNORECASE,
)  # "more than 2 attachments"
_AMOUNT = re.compile(
    r"[^\w\s]{0,3}\d[\d.,]*\s?%?(?:\s?(?!(?:and|or|that|which|who|with|in|by|from|of)\b)[^\W\d]+){0,2}"
)
_PROPER = re.compile(NAME)
_VALUE = re.compile(rf"{NAME}|[\"“][^\"”]+[\"”]|'[^']+'|[\w.&’'/-]+")


def compared(text: str, vocabulary: Vocabulary) -> Filter | MetadataTest | None:
    """Return the comparison in "with team = ops", "whose year is after 2020", "value above 1,000".

    Args:
        text: Words of the condition.
        vocabulary: Words of the metadata.

    Returns:
        A filter, or a test if the field's numbers are stored as texts; None if the words compare no field.
    """
    plain = re.sub(r"^(?:with|whose|where|having|have|has|having|in which|and)\s+", "", text, flags=re.IGNORECASE)
    plain = _COUNTED.sub(r"\g<name> \g<sign> \g<number>", _undetermined(plain))
    for name, field in sorted(vocabulary.fields.items(), key=lambda pair: -len(pair[0])):
        width = _length_of(plain, name)
        if not width:
            continue
        rest = without_link(plain[width:].strip())
        if rest.lower().startswith("between "):
            return _comparison(vocabulary, field.name, "=", rest)
        for pattern, operator in OPERATORS:
            if match := pattern.match(rest):
                return _comparison(vocabulary, field.name, operator, rest[match.end() :])
        value = _undetermined(rest)
        unknown = equal(field, value) if _PROPER.fullmatch(value) and not field.is_number else None
        return vocabulary.having(value, field.name) or unknown
    return None


def _undetermined(text: str) -> str:
    """Return a text without an article or a similar word before it."""
    match = _DETERMINER.match(text)
    return text[match.end() :] if match else text


def without_link(text: str) -> str:
    """Return a comparison without the "of" or "that is" before its operator, as in "of more than 5"."""
    match = _LINK.match(text)
    return text[match.end() :] if match else text


def _length_of(text: str, name: str) -> int:
    """Return the length of a field's name at the beginning of a text; 0 if it does not begin with it."""
    pattern = r"[\s_\-/]+".join(map(re.escape, name.split()))
    match = re.match(rf"{pattern}(?![\w-])", text, re.IGNORECASE)
    return match.end() if match else 0


def _comparison(vocabulary: Vocabulary, name: str, operator: Operator, text: str) -> Filter | MetadataTest | None:
    field = next(field for field in vocabulary.overview.fields if field.name == name)
    value = _undetermined(text).strip(" \"“”'?.,")
    if between := re.fullmatch(r"between (\S+) and (\S+)", value, re.IGNORECASE):
        low, high = number_in(between[1]), number_in(between[2])
        if field.is_number and low is not None and high is not None:
            return all_of(Comparison(name, ">=", low), Comparison(name, "<=", high))
    if field.is_number:
        number = number_in(value)
        return None if number is None else Comparison(name, operator, number)
    if not has_unit(field, value):
        return None
    if between and (expression := number_expression(field)) and low is not None and high is not None:
        return MetadataTest(name, f"{low!r} <= {expression} <= {high!r}")
    if (expression := number_expression(field)) and (number := number_in(value)) is not None:
        return MetadataTest(name, f"{expression} {'==' if operator == '=' else operator} {number!r}")
    if all(isinstance(known, bool) for known, _ in field.values):
        truth = {"true": True, "yes": True, "false": False, "no": False}.get(value.casefold())
        return None if truth is None else Comparison(name, operator, truth)
    if operator in ("=", "!="):
        where = vocabulary.having(value, name) or (equal(field, value) if _VALUE.fullmatch(text.strip()) else None)
        return where if operator == "=" or where is None else where.negated()
    return Comparison(name, operator, value) if re.match(r"\d{4}", value) else None


def number_in(text: str) -> int | float | None:
    """Return the number in a text that consists of a number and its unit; None for other texts."""
    if not _AMOUNT.fullmatch(text.strip()):
        return None
    try:
        number = HELPERS["parse_number"](text)
    except ValueError:
        return None
    assert isinstance(number, int | float)
    return int(number) if float(number).is_integer() else number
