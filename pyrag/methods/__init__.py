"""Methods: named ways from a question to an answer, all over the same episode. `registry` lists them."""
