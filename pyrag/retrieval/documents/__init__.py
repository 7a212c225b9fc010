"""Passages from files in many formats. `reading` is the entry point; other modules each read one kind of file."""
