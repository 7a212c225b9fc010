"""Routes for clients of OpenAI's API: models, chat completions and responses."""
