"""Amounts in texts: units of measurement, currencies and quantities."""
