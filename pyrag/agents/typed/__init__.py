"""Typed answers: numbers, dates, yes or no, lists, and values of a JSON schema."""
