"""Numbers and quantities in texts: "1.18 trillion", "12’400 CHF", "three dozen", "6 ft 2 in"."""

from __future__ import annotations

from typing import Any

from pyrag_helpers.known import require_known
from pyrag_helpers.measures.amounts import Amount, in_base, read_amount, read_amounts
from pyrag_helpers.measures.quantities import quantity


def parse_number(text: str | int | float, context: str | None = None) -> int | float:
    """Return the first number in a text, in digits or words, with its scale ("1.18 trillion"). Units are ignored.

    Args:
        text: The text, or an answer that contains a number.
        context: Text of the document that the number is from; its other numbers show whether "1.750" is a thousand.

    Raises:
        ValueError: There is no number, or the text has a range, a list, a compound of units ("6 ft 2 in") or an
            ambiguous number.
    """
    text = require_known(text)
    if isinstance(text, int | float):
        return text
    amount, parts = read_amount(text, context)
    if parts:
        raise ValueError(f"{str(text)[:80]!r} has two units: read it with parse_quantity")
    return amount.value


def parse_quantity(text: str | int | float, context: str | None = None) -> int | float:
    """Return the first number in a text as a quantity in the base unit of its kind: "900 g" is 0.9, in kg.

    Base units are kg, m, m², m³, s, m/s, °C and byte. A quantity is a number. Comparing it with a quantity of another
    kind (length and mass, euros and dollars) raises `ValueError`, as does adding one. Without a known unit, the result
    is a plain number.

    Args:
        text: The text, or an answer that contains a quantity.
        context: Text of the document that the number is from; its other numbers show whether "1.750" is a thousand.

    Raises:
        ValueError: There is no single number, as in `parse_number`; compounds such as "6 ft 2 in" are added up.
    """
    text = require_known(text)
    if isinstance(text, int | float):
        return text
    total: int | float = _total(*read_amount(text, context))
    return total


def quantities_in(text: str) -> list[Any]:
    """Return all readable quantities in a text, in order.

    Args:
        text: The text.
    """
    return [_total(amount, parts) for amount, parts in read_amounts(text)]


def _total(amount: Amount, parts: list[Amount]) -> Any:
    rest = sum(map(in_base, parts))
    return quantity(in_base(amount) + (-rest if amount.value < 0 else rest), amount.unit)
