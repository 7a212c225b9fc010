"""Small networks without torch: an ONNX session and a WordPiece tokenizer."""
