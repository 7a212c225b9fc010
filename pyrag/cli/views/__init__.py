"""Traces on a terminal."""
