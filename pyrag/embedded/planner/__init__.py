"""The embedded planner: grammar turns a question into steps, and steps become a program."""
