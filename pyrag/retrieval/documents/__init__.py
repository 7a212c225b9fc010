"""Passages out of files in many formats. `reading` is the door; other modules read one kind of file each."""
