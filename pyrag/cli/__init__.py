"""The command line: thin commands over `pyrag.PyRAG`. `main` is the entry point, `app` lists the commands."""
