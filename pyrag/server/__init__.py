"""HTTP service of `pyrag serve`: questions, passages and traces in one FastAPI application."""
