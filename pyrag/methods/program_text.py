"""Statements that several plan compilers generate."""

from __future__ import annotations


def attempted(name: str, known: str, value: str, otherwise: str) -> list[str]:
    """Return statements for a computed value.

    Args:
        name: Variable to assign.
        known: Condition under which the answers that it uses are known.
        value: Expression that computes the value.
        otherwise: Statement for the case that the value cannot be computed.
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
