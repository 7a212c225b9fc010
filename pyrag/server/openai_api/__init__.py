"""The routes that clients of OpenAI's API ask: models, chat completions and responses."""
