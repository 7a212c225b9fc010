"""Computations over the rows of tables, with columns and conditions in words."""

from pyrag_helpers.tables.value import HOW, table_value

__all__ = ["HOW", "table_value"]
