"""Route for estimates."""
