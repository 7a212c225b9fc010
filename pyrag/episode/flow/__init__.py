"""Flow policy: calls with effects that depend on retrieved text are refused, or confirmed first."""
