"""Statements that compilers of plans write alike."""

from __future__ import annotations


def attempted(name: str, known: str, value: str, otherwise: str) -> list[str]:
    """Return statements for a computed value.

    Args:
        name: The variable that gets it.
        known: Condition: the answers that it is computed from are known.
        value: The expression that computes it.
        otherwise: The value where it cannot be computed.
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
