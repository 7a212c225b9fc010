"""Chat models: OpenAI-compatible servers, vLLM and transformers in this process, and scripts."""
