"""`pyrag reproduce`."""
