"""Pure functions that programs may call on texts: dates, numbers, periods, names and lists.

They parse an answer's text ("7 December 1973", "1.18 trillion", "from 1914 to 1938", "the U.S.") and compute with it,
so that no model has to do arithmetic. A text without a readable value raises `ValueError`, whose message suggests what
to do instead; an answer that was not found raises `UnknownAnswerError`. No function guesses a missing value, looks
anything up or keeps state.

The sandbox imports this package into its workers by name (`Sandbox.run(…, helpers=MODULE)`), so it imports only the
standard library, and nothing from `pyrag`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrag_helpers.dates import overlap, parse_date, parse_year, years_between
from pyrag_helpers.known import UnknownAnswerError, is_known
from pyrag_helpers.names import common, same_entity
from pyrag_helpers.numbers import parse_number, parse_quantity
from pyrag_helpers.tables.value import table_value
from pyrag_helpers.tables.words import TableError

__all__ = ["ERRORS", "HELPERS", "MODULE"]

MODULE = __name__
ERRORS: dict[str, type[Exception]] = {"UnknownAnswerError": UnknownAnswerError, "TableError": TableError}
HELPERS: dict[str, Callable[..., object]] = {
    "parse_date": parse_date,
    "parse_year": parse_year,
    "parse_number": parse_number,
    "parse_quantity": parse_quantity,
    "years_between": years_between,
    "overlap": overlap,
    "same_entity": same_entity,
    "common": common,
    "is_known": is_known,
    "table_value": table_value,
}
