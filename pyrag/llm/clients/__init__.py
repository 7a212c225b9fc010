"""Chat models: OpenAI-compatible servers, vLLM and transformers in process, scripts."""
