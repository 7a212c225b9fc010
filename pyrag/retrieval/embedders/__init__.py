"""From texts to vectors: bundled, ONNX, sentence-transformers, OpenAI-compatible servers."""
