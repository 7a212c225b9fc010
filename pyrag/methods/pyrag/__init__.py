"""PyRAG: decompose, plan a program, execute it and repair it; plus two ablations."""
