"""The embedded reader: short answers from passages, by patterns, scores and a small network."""
