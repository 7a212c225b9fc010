"""Rewards: of PyRAG's and OPERA's agents, and the function that verl calls."""
