"""Your own functions for programs, in addition to `retrieve` and `answer`.

    from pyrag import PyRAG
    from pyrag.extend import sql_tool

    def population(city: str) -> int | None:
        "Return the number of inhabitants of a city; None for a city that is not in the register."
        return REGISTER.get(city)

    rag = PyRAG("openai:MODEL@URL", tools=[population, sql_tool("shop.db")])

See docs/tools.md.
"""

from __future__ import annotations

from pyrag.tools.sql import sql_tool
from pyrag.tools.table import table_tool
from pyrag.tools.tool import Sourced, Tool, ToolError, tool

__all__ = ["Sourced", "Tool", "ToolError", "sql_tool", "table_tool", "tool"]
