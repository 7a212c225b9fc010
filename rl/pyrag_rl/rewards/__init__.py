"""Rewards: of PyRAG's and OPERA's agents, and the environment that they are computed in."""
