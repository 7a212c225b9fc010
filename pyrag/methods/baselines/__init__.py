"""Published baselines: direct, chain of thought, one retrieval, and iterative retrieval."""
