"""Parts that this package adds to pyrag; pyproject.toml names them."""
