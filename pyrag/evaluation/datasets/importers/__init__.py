"""Importers that convert released data sets to the common layout."""
