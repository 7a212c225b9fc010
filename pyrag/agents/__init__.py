"""Agent roles: protocols, implementations over language models, and parsers of model replies."""
