"""The network that marks answers in passages: its input, its run, and what its scores mean."""
