"""One question being answered: primitives, budget, memo, recovery, plan checks, speculation."""
