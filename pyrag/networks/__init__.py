"""What small networks need to run without torch: an ONNX session and a WordPiece tokenizer."""
