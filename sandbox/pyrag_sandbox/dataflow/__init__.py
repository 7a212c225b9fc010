"""Static analysis: which parts of a program may run in parallel."""
