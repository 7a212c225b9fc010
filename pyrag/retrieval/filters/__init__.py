"""Filters over the metadata of passages: language, evaluation, selections of an index, verdicts."""
