"""Rewards of PyRAG's and OPERA's agents, and the environment in which they are computed."""
