"""Parsers of model replies: thinking, JSON values, programs, answers, sub-queries."""
