"""The route of estimates."""
