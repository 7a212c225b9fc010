"""Sub-goals: the form in which methods plan, and in which rules read a question for them."""
