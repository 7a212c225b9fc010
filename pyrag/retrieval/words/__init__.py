"""Words: terms of texts and queries, their further forms, and languages."""
