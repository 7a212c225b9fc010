"""Benchmarks that `make bench` runs. They import `pyrag`; nothing imports them."""
