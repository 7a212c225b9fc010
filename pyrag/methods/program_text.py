"""Statements that compilers of plans write alike."""

from __future__ import annotations


def attempted(name: str, known: str, value: str, otherwise: str) -> list[str]:
    """Statements for a value from answers that are all `known`; where they are not, or hold nothing of the kind that it
    is computed from, for another one."""
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
