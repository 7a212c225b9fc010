"""Published baselines: direct answers, chain of thought, single retrieval, and iterative retrieval."""
