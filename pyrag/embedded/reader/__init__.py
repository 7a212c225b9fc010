"""Embedded reader: short answers from passages, by patterns, comparison and a small network."""
