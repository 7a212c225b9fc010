"""Learning without touching weights: experiences and prompts from training questions (HERA, algorithms 1 to 6)."""
