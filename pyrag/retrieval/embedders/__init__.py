"""Embedders of texts: bundled, ONNX, sentence-transformers, OpenAI-compatible servers."""
