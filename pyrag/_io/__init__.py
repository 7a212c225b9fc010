"""Doors to the outside world that several packages share: HTTP, the hub, JSON lines, threads, Ray, secrets."""
