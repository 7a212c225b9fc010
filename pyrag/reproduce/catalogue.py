"""All tables and figures by name."""

from __future__ import annotations

from pyrag.errors import UsageError, nearest
from pyrag.reproduce import hera_tables, opera_tables, pyrag_tables
from pyrag.reproduce.tables import PaperTable

TABLES: dict[str, PaperTable] = {
    table.key: table for table in (*pyrag_tables.TABLES, *opera_tables.TABLES, *hera_tables.TABLES)
}


def table_of(name: str) -> PaperTable:
    """Return a table by name. Raises `UsageError` with the nearest known name if there is none."""
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}{nearest(name, TABLES)} (all: pyrag reproduce list)")
    return TABLES[name]
