"""`pyrag serve`, `pyrag mcp` and `pyrag serve-retriever`."""
