"""The trace of a question: plain data, its events, and what agents did in it."""
