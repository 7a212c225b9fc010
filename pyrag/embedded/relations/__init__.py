"""Relations that questions ask about: one table for the planner, the reader and the rewriter."""
