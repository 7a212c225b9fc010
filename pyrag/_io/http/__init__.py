"""JSON over HTTP: addresses, routes, connections, bounded bodies, and error messages."""
