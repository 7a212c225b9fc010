"""The relations that questions ask about: one table, which planner, reader and rewriter share."""
