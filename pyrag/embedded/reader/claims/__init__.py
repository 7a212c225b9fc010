"""Yes/no questions about one thing: the claim of a question is compared with what sentences state."""
