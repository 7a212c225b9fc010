"""Methods: named ways from a question to an answer, all based on the same episode. `registry` lists them."""
