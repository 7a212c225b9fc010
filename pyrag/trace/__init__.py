"""The trace of a question: plain data, its events, and the agents' part in it."""
