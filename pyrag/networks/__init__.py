"""Small networks without torch: ONNX sessions and a WordPiece tokenizer."""
