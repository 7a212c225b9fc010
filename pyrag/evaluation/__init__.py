"""Data sets, and the scoring functions that benchmarks and rewards share."""
