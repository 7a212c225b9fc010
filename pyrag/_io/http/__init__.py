"""JSON over HTTP: addresses, routes, connections, bounded bodies, and errors in words."""
