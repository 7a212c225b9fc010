"""Learning without changing weights: experience and prompts from training questions (HERA, algorithms 1 to 6)."""
