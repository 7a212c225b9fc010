"""The embedded planner: a question's grammar becomes steps, and steps become a program."""
