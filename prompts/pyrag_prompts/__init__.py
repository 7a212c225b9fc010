"""All prompts of the project, each in a plain template file that `pyrag.agents.prompts` reads.

Each folder in `PROMPT_SETS` holds an alternative to the default prompts: `small` is for models that learned their task
from examples and need no instructions, `fast` has short instructions for the profile of that name, and `paper` has the
structure of the prompts in the releases of PyRAG and OPERA, in our own words. Default prompts are used for prompts that
a set lacks.
"""

PROMPT_SETS = ("small", "fast", "paper")
