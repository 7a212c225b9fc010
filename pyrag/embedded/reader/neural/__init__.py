"""Neural reader: a network that marks answers in passages, its input, and checks of the answers."""
