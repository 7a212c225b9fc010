"""Binding of a program's arguments to a primitive's parameters, by Python's rules and with Python's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrag_sandbox.contract import Call, PrimitiveError


def bind(call: Call, parameters: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's values by parameter name, bound as Python binds `def name(first, second=default)`.

    Args:
        call: The call, with positional and keyword arguments.
        parameters: Names in the order of the signature.
        defaults: Values of optional parameters.

    Raises:
        PrimitiveError: The arguments do not match; it is a `TypeError` in the program, with Python's message
            and the signature.
    """
    name = call.name
    shown = ", ".join(f"{parameter}=…" if parameter in defaults else parameter for parameter in parameters)
    usage = f"write {name}({shown})"
    if len(call.args) > len(parameters):
        message = f"{name}() takes {len(parameters)} arguments but {len(call.args)} were given: {usage}"
        raise PrimitiveError(message, "TypeError")
    values = dict(zip(parameters, call.args, strict=False))
    for key, value in call.kwargs.items():
        if key not in parameters:
            raise PrimitiveError(f"{name}() got an unexpected keyword argument {key!r}: {usage}", "TypeError")
        if key in values:
            raise PrimitiveError(f"{name}() got multiple values for argument {key!r}", "TypeError")
        values[key] = value
    for parameter in parameters:
        if parameter not in values and parameter not in defaults:
            raise PrimitiveError(f"{name}() missing its argument {parameter!r}: {usage}", "TypeError")
    return {**defaults, **values}
