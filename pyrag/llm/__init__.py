"""Chat models with a common protocol."""
