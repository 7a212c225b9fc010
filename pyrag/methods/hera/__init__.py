"""HERA: an orchestrator's topology of agents becomes a program."""
