"""Agents that search while they think, in the dialects of their releases."""
