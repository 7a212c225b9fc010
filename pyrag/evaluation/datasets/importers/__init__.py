"""Importers of released data sets into the common layout."""
