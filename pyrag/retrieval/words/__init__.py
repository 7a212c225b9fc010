"""Terms of texts and queries, additional forms of words, and languages."""
