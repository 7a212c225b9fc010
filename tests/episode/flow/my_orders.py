"""A tool with effects that a server or a command opens by its name. What is ordered goes to a file."""

from __future__ import annotations

import os
from pathlib import Path

from pyrag.extend import tool


@tool(effects=True)
def order(item: str) -> str:
    """Order an item."""
    with Path(os.environ["ORDERS"]).open("a", encoding="utf-8") as file:
        file.write(f"{item}\n")
    return f"order of {item}"
