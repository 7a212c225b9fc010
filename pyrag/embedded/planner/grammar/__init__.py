"""The grammar of questions: each module reads one kind of phrase or question."""
