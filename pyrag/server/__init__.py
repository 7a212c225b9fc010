"""The HTTP service of `pyrag serve`: questions, passages and traces over one FastAPI application."""
