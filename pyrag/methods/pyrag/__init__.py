"""PyRAG: decompose, plan a program, execute it, repair it; and its two ablations."""
