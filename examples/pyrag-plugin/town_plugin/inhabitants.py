"""The command `pyrag inhabitants CITY`."""

from __future__ import annotations

from town_plugin.register import population


def inhabitants(city: str) -> None:
    """Print the inhabitants of a city."""
    print(population(city) or "unknown")
