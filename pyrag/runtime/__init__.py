"""The way from settings and a question to a trace."""
