"""Static analysis: which parts of a program may run side by side."""
