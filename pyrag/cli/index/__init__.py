"""`pyrag index`: options and work."""
