"""Model Context Protocol: pyrag as tools and resources of an assistant."""
