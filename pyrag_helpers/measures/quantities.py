"""Quantities: numbers with a kind, which cannot be compared with numbers of another kind."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pyrag_helpers.measures.units import NO_UNIT, Unit


class Quantity:
    """Number in the base unit of its kind.

    Quantities of one kind are compared, added and subtracted like numbers. Quantities of different kinds raise
    `ValueError`, as do nearly equal quantities in units that differ between countries, such as tons and tonnes. A plain
    number can be compared with any quantity.

    Attributes:
        number: The value as a plain number.
        unit: The unit that the quantity was written in.
    """

    number: int | float
    unit: Unit

    def __str__(self) -> str:
        return str(self.number)

    def __repr__(self) -> str:
        return repr(self.number)

    def __format__(self, form: str) -> str:
        return format(self.number, form)

    def __hash__(self) -> int:
        return hash(self.number)


class _IntQuantity(Quantity, int):
    pass


class _FloatQuantity(Quantity, float):
    pass


def quantity(number: int | float, unit: Unit = NO_UNIT) -> Any:
    """Return a quantity, which is also an `int` or a `float`.

    Args:
        number: Value in the base unit of its kind.
        unit: The unit that the quantity was written in.
    """
    made: Any = _IntQuantity(number) if isinstance(number, int) else _FloatQuantity(number)
    made.number, made.unit = number, unit
    return made


def _checked(a: Any, b: Any) -> Any:
    """Return the second operand as a plain number, if the two can be compared."""
    if not isinstance(b, Quantity):
        return b
    if a.unit.kind != b.unit.kind:
        names = " and ".join(repr(operand.unit.name or "no unit") for operand in (a, b))
        raise ValueError(f"quantities in {names} cannot be compared: ask for both in the same unit")
    if a.unit.name != b.unit.name and a.number != b.number:
        spread = abs(a.number) * a.unit.spread + abs(b.number) * b.unit.spread
        if abs(a.number - b.number) <= spread:
            raise ValueError(
                f"{a.unit.name!r} and {b.unit.name!r} are too close to compare, since their sizes differ between "
                "countries: ask for both in the same unit"
            )
    return b.number


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    compare = getattr(operator, name.strip("_"))

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return compare(self.number, _checked(self, other))

    return method


def _sum(name: str, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        number = _checked(self, other)
        return quantity(compute(number, self.number) if reflected else compute(self.number, number), self.unit)

    return method


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Quantity, _name, _comparison(_name))
for _name in ("add", "sub"):
    setattr(Quantity, f"__{_name}__", _sum(_name))
    setattr(Quantity, f"__r{_name}__", _sum(_name, reflected=True))
