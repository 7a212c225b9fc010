"""Types that a caller requests for a final value: a name, a JSON schema, or a Python type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import date
from typing import Any, is_typeddict

from pyrag.agents.typed.returns import Returns
from pyrag.agents.typed.shaping import PLACE, fills_from_text, shaped
from pyrag.errors import UsageError

_CURE = (
    "give a dataclass, pydantic model, TypedDict, int, float, bool, str, date, list[str], a JSON schema as a dict, or "
    'a name such as "number" or "date"'
)
_DAY = {"type": "string", "format": "date"}
_BUILTIN: Mapping[Any, tuple[str | dict[str, Any], Callable[[Any], Any] | None]] = {
    bool: ("bool", None),
    int: ("int", None),
    float: ("number", float),
    str: ("str", None),
    date: (_DAY, date.fromisoformat),
    list[str]: ("list[str]", None),
}


@dataclass(frozen=True, slots=True)
class Contract:
    """Requested type of a final value.

    Attributes:
        returns: The type, with its JSON schema.
        make: Converts a JSON value to the Python object; may raise any error if the value does not fit.
    """

    returns: Returns
    make: Callable[[Any], Any] | None = None

    @property
    def wanted(self) -> Any:
        """Name of the type, or its JSON schema, as traces store it."""
        return dict(self.returns.schema) if self.returns.name == "json" else self.returns.name

    @property
    def fills_from_text(self) -> bool:
        """True if a single short text can supply the value."""
        return fills_from_text(self.returns)

    def fitted(self, value: Any) -> Any:
        """Convert a JSON value to the form of the type.

        Args:
            value: JSON, with None for unknown answers; see `shaped`.

        Raises:
            ValueError: The value does not fit. The message names the place and the fault.
        """
        fitting = shaped(value, self.returns)
        self.object(fitting)
        return fitting

    def object(self, value: Any) -> Any:
        """Convert a value that `fitted` returned to its Python object. Raises `ValueError` if it does not fit."""
        if self.make is None or value is None:
            return value
        try:
            return self.make(value)
        except Exception as error:  # a caller's type may raise anything
            detail = " ".join(str(error).split())[:300]
            raise ValueError(f"{PLACE} does not fit ({type(error).__name__}): {detail}") from None


def contract_of(returns: Any, *, strict: bool = True) -> Contract | None:
    """Return the contract for a requested type.

    Args:
        returns: Python type, name of a type, or JSON schema; None for no contract.
        strict: Whether a JSON schema's keywords that cannot be checked are refused.

    Raises:
        UsageError: The type does not exist, or its values cannot be checked.
    """
    if returns is None or isinstance(returns, Contract):
        return returns
    try:
        if isinstance(returns, str | Mapping):
            return Contract(Returns.of(returns, strict=strict))
        schema, make = _BUILTIN.get(returns, (None, None)) if returns.__hash__ else (None, None)
        if schema is None:
            schema, make = _of_type(returns)
        return Contract(Returns.of(schema, strict=False), make)
    except ValueError as error:
        raise UsageError(f"cannot check the type of returns: {error}") from None


def _of_type(kind: Any) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return a type's schema and constructor, made by msgspec, or by pydantic if the type contains a pydantic model."""
    if not (isinstance(kind, type) or is_typeddict(kind) or hasattr(kind, "__origin__") or hasattr(kind, "__args__")):
        raise UsageError(f"returns cannot be {str(kind)[:80]!r}: {_CURE}")
    import msgspec

    try:
        schema: dict[str, Any] = msgspec.json.schema(kind)
        return schema, lambda value: msgspec.convert(value, kind)
    except (TypeError, msgspec.MsgspecError, NameError):
        pass  # a type that msgspec does not know
    try:
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(kind)
        return adapter.json_schema(), lambda value: adapter.validate_json(json.dumps(value))
    except Exception as error:  # pydantic is missing, or refuses the type in its own words
        fields = "the fields of " if is_dataclass(kind) or is_typeddict(kind) else ""
        raise UsageError(
            f"cannot check {fields}{getattr(kind, '__name__', kind)!s} in returns "
            f"({' '.join(str(error).split())[:120]}): {_CURE}"
        ) from None
