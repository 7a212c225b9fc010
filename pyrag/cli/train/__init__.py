"""`pyrag train`: options and the doors to `pyrag_rl`."""
