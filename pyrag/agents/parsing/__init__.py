"""Parsers of model replies: thinking, JSON values, programs, answers and sub-queries."""
