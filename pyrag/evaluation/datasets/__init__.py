"""Question sets: reading, sampling, and importing released sets."""
