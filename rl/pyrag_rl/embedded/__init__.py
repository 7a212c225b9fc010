"""Training of the embedded engine's own network."""
