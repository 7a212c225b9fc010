"""All tables and figures by name."""

from __future__ import annotations

from pyrag.errors import UsageError, nearest
from pyrag.reproduce import hera_tables, opera_tables, pyrag_tables
from pyrag.reproduce.tables import PaperTable

TABLES = {table.key: table for module in (pyrag_tables, opera_tables, hera_tables) for table in module.TABLES}


def table_of(name: str) -> PaperTable:
    """Return a table by name. Raises `UsageError` with the nearest known one."""
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}{nearest(name, TABLES)}: see pyrag reproduce list")
    return TABLES[name]
