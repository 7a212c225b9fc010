"""Statements that several compilers of plans generate."""

from __future__ import annotations


def attempted(name: str, known: str, value: str, otherwise: str) -> list[str]:
    """Return statements for a computed value.

    Args:
        name: Variable to assign.
        known: Condition that the answers it is computed from are known.
        value: Expression that computes the value.
        otherwise: Value if it cannot be computed.
    """
    return [
        f"{name} = None",
        f"if {known}:",
        "    try:",
        f"        {name} = {value}",
        "    except ValueError:",
        "        pass",
        f'if {name} in (None, ""):',
        f"    {name} = {otherwise}",
    ]
