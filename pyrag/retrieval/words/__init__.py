"""Terms of texts and queries, further forms of words, and languages."""
