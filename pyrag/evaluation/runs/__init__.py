"""Runs of a benchmark: their folder, journal, batch and provenance."""
