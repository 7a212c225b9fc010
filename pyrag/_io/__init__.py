"""Shared access to the outside world: files, locks, HTTP, the hub, threads, Ray, and redaction of secrets."""
