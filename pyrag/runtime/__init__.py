"""From settings and a question to a trace."""
