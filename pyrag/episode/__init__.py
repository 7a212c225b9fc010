"""State of one question: primitives, budget, memo, recovery, plan checks and speculation."""
