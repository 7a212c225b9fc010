"""Question sets: reading, sampling, and importing released ones."""
