"""Access to the outside world that several packages share: files, locks, HTTP, the hub, threads, Ray, secrets."""
