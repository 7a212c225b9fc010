"""`pyrag index`: its options and its work."""
