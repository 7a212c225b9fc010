"""OPERA: goals with placeholders become a program; answers are judged and queries rewritten."""
