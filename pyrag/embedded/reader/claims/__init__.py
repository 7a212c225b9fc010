"""Yes/no questions about one thing: a claim is read from the question and compared with what sentences state."""
