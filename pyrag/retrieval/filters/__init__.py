"""Filters over the metadata of passages: their language, their meaning, and what an index makes of them."""
