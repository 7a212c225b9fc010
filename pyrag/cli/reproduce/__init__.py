"""`pyrag evolve` and `pyrag experience`."""
