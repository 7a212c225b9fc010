"""PyRAG: decompose, plan a program, execute it and repair it; with its two ablations."""
