"""Passages from files in many formats. `reading` is the entry point; other modules read one kind of file each."""
