"""Data sets and scores by which benchmarks and rewards measure a trace, with one scoring function for all of them."""
