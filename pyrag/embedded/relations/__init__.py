"""Relations that questions ask about: a single table for the planner, the reader and the rewriter."""
