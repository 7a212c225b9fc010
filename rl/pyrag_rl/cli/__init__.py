"""`pyrag train`: its options, and the work of its commands."""
