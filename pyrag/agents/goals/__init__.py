"""Sub-goals: the form of methods' plans, and of the questions that rules read for them."""
